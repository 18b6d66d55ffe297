// SPDX-License-Identifier: Apache-2.0
#include <incipit/compressor.h>
#include <incipit/engine.h>
#include <incipit/openai.h>

#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support.h"

// Makes a conversation fit a token budget, and shows what became of it: see --help.

namespace {

using Json = nlohmann::ordered_json;

const std::map<std::string, incipit::CompressionPolicy> kPolicies = {
    {"none", incipit::CompressionPolicy::kNone},
    {"window", incipit::CompressionPolicy::kWindow},
    {"dedup_summary_truncate", incipit::CompressionPolicy::kDedupSummaryTruncate},
    {"frozen_segments", incipit::CompressionPolicy::kFrozenSegments}};

struct Options {
  std::string in, model, json, html, policy = "frozen_segments";
  incipit::CompressorOptions compressor = {};
};

void declare(CLI::App& app, Options& options) {
  app.add_option("--in", options.in,
                 "Conversation as OpenAI-style JSON: a list of {\"role\", \"content\"}")
      ->required();
  app.add_option("--budget", options.compressor.token_budget, "Tokens that the prompt may take")
      ->required()
      ->check(CLI::PositiveNumber);
  app.add_option("--policy", options.policy,
                 "none, window, dedup_summary_truncate or frozen_segments")
      ->check(CLI::IsMember(&kPolicies))
      ->capture_default_str();
  app.add_option("--model", options.model,
                 "Count as this model does (GGUF file or Hugging Face directory), not roughly");
  app.add_option("--evidence-share", options.compressor.evidence_share,
                 "Share of the budget for what is brought back for the last user turn")
      ->capture_default_str();
  app.add_option("--html", options.html, "Write a side-by-side view here");
  app.add_option("--json", options.json, "Write messages and report here; -: stdout");
}

std::string_view role_name(incipit::Role role) {
  switch (role) {
    case incipit::Role::kSystem:
      return "system";
    case incipit::Role::kUser:
      return "user";
    case incipit::Role::kAssistant:
      return "assistant";
    case incipit::Role::kTool:
      break;
  }
  return "tool";
}

Json to_json(const incipit::CompressedPrompt& prompt) {
  Json report = Json::array();
  for (const incipit::MessageReport& message : prompt.report) {
    report.push_back({{"id", message.id},
                      {"fate", incipit::to_string(message.fate)},
                      {"tokens_before", message.tokens_before},
                      {"tokens_after", message.tokens_after},
                      {"why", message.why}});
  }
  return {{"messages", Json::parse(incipit::messages_to_openai(prompt.messages))},
          {"tokens_before", prompt.tokens_before},
          {"tokens_after", prompt.tokens_after},
          {"report", std::move(report)}};
}

void print(std::ostream& out, const incipit::CompressedPrompt& prompt) {
  out << std::left << std::setw(12) << "message" << std::setw(12) << "fate" << std::right
      << std::setw(8) << "tokens" << std::setw(8) << "left"
      << "  why\n";
  for (const incipit::MessageReport& message : prompt.report) {
    out << std::left << std::setw(12) << message.id << std::setw(12)
        << incipit::to_string(message.fate) << std::right << std::setw(8) << message.tokens_before
        << std::setw(8) << message.tokens_after << "  " << message.why << "\n";
  }
  out << prompt.tokens_before << " tokens became " << prompt.tokens_after << " ("
      << std::lround(100 * prompt.ratio()) << " % saved)\n";
}

std::string escaped(std::string_view text) {
  std::string html;
  for (const char c : text) {
    if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else if (c == '>') {
      html += "&gt;";
    } else if (c == '"') {
      html += "&quot;";
    } else {
      html += c;
    }
  }
  return html;
}

constexpr std::string_view kHtmlHead = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Compressed conversation</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 90rem; padding: 1rem; color: #1d2733; background: #f6f7f9; }
main { display: grid; grid-template-columns: 1fr 1fr; gap: 1.5rem; align-items: start; }
article { background: #fff; border-left: 4px solid #bbb; border-radius: 4px; margin: 0 0 .6rem; padding: .4rem .8rem; }
article p { margin: .2rem 0; white-space: pre-wrap; overflow-wrap: anywhere; }
header { display: flex; gap: .6rem; font-size: 12px; color: #5a6776; }
b { color: #1d2733; }
.kept { border-color: #2e9e5b; } .pinned { border-color: #7a4fd0; } .quoted { border-color: #1d7fd1; }
.summarized { border-color: #d99a17; } .shortened { border-color: #d99a17; }
.duplicate { border-color: #9aa4af; opacity: .75; } .dropped { border-color: #d1453b; opacity: .6; }
</style></head><body>
)";

void write_message(std::ostream& out, const incipit::Message& message, std::string_view css,
                   const std::string& label) {
  out << "<article class=\"" << css << "\"><header><b>" << role_name(message.role) << "</b> "
      << escaped(label) << "</header><p>" << escaped(incipit::shown_text(message))
      << "</p></article>\n";
}

void write_html(const std::string& path, const std::vector<incipit::Message>& conversation,
                const incipit::CompressedPrompt& prompt) {
  std::ofstream out(path, std::ios::binary);
  out << kHtmlHead << "<h1>" << prompt.tokens_before << " tokens became " << prompt.tokens_after
      << "</h1>\n<main><section><h2>The conversation</h2>\n";
  for (const incipit::MessageReport& report : prompt.report) {
    const incipit::Message& message = conversation[report.index];
    std::ostringstream label;
    label << report.id << " · " << (message.pinned ? "pinned" : incipit::to_string(report.fate))
          << " · " << report.tokens_before << " → " << report.tokens_after << " · " << report.why;
    write_message(out, message, message.pinned ? "pinned" : incipit::to_string(report.fate),
                  label.str());
  }
  out << "</section><section><h2>What the model reads</h2>\n";
  for (const incipit::Message& message : prompt.messages) {
    write_message(out, message, message.pinned ? "pinned" : "kept", message.id);
  }
  out << "</section></main></body></html>\n" << std::flush;
  if (!out) throw std::runtime_error("cannot write " + path);
}

int run(Options& options) {
  options.compressor.policy = kPolicies.at(options.policy);
  const std::vector<incipit::Message> conversation =
      incipit::messages_from_openai(examples::read_file(options.in));
  std::optional<incipit::Engine> engine;
  if (!options.model.empty()) engine.emplace(incipit::EngineOptions{.model = options.model});
  const incipit::TokenCounter counter =
      engine ? engine->token_counter() : incipit::rough_token_counter();
  const incipit::CompressedPrompt prompt =
      incipit::Compressor::compress(conversation, options.compressor, counter);
  print(examples::console(options.json), prompt);
  if (!options.html.empty()) write_html(options.html, conversation, prompt);
  if (!options.json.empty()) examples::write_json(options.json, to_json(prompt), 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes a conversation fit a token budget, and says what became of each message.",
               "compress");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&options] { return run(options); });
}
