// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "chart.h"
#include "datasets.h"
#include "examples/support.h"
#include "generate.h"
#include "incipit/compressor.h"
#include "incipit/engine.h"
#include "memory.h"
#include "replay.h"

// Replays conversations through ways to fit them into a budget: see --help.

namespace {

using bench::Critical;
using bench::Result;
using Json = nlohmann::ordered_json;

constexpr const char* kFormats =
    "A file of data holds {\"conversations\": [{\"turns\": [{\"id\", \"role\", \"text\"}...],\n"
    "\"questions\": [{\"after\": turn id, \"text\", \"evidence\": [turn ids]}...]}...]}, or is\n"
    "in the format of --dataset. Without one, chats are made up, in English and Chinese.\n"
    "Each conversation is replayed behind a system prompt of 400 tokens: every user message is\n"
    "a request, and a question a probe at its place, which leaves no trace. Prefilled are the\n"
    "tokens past what a prompt shares with the previous one and its reply, in blocks of 16. A\n"
    "piece of evidence is recalled if whole sentences with half of its tokens stand in the\n"
    "prompt; retention is that of recalled pieces.";

struct Options {
  std::string model, data, dataset = "json", policy = "frozen_segments", json, chart, write_data;
  incipit::CompressorOptions compressor;
  bool all_policies = false;
  bench::GeneratorOptions generator;
};

template <class List>
std::vector<std::string> strings(const List& list) {
  return {list.begin(), list.end()};
}

void declare(CLI::App& app, Options& options) {
  app.add_option("--model", options.model, "Count its tokens; without one, rough ones");
  CLI::Option* const data = app.add_option("--data", options.data, "Conversations to replay");
  app.add_option("--dataset", options.dataset, "Format of the data")
      ->check(CLI::IsMember(strings(bench::kDatasets)))
      ->needs(data)
      ->capture_default_str();
  app.add_option("--budget", options.compressor.token_budget, "Tokens that a prompt may take")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1} << 24))
      ->capture_default_str();
  app.add_option("--policy", options.policy, "How to fit")
      ->check(CLI::IsMember(strings(bench::kPolicies)))
      ->capture_default_str();
  app.add_flag("--all-policies", options.all_policies, "Each policy in turn");
  app.add_option("--json", options.json, "Write the results here; -: stdout, all else to stderr");
  app.add_option(
      "--chart", options.chart,
      "Draw recall by prefilled tokens, at half the budget, all and twice of it, for all "
      "policies, into this SVG file");
  app.add_option("--seed", options.generator.seed, "Of chats that are made up")
      ->capture_default_str();
  app.add_option("--conversations", options.generator.conversations, "How many to make up")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}))
      ->capture_default_str();
  app.add_option("--turns", options.generator.turns, "Of the user, in a chat that is made up")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000000}))
      ->capture_default_str();
  app.add_option("--evidence-share", options.compressor.evidence_share,
                 "CompressorOptions::evidence_share, and so on")
      ->capture_default_str();
  app.add_option("--low-watermark", options.compressor.low_watermark)->capture_default_str();
  app.add_option("--headroom-turns", options.compressor.headroom_turns)->capture_default_str();
  app.add_option("--segment-ratio", options.compressor.segment_ratio)->capture_default_str();
  app.add_option("--frozen-cap", options.compressor.frozen_cap)->capture_default_str();
  app.add_option("--write-data", options.write_data, "Write the conversations here, as JSON");
  app.footer(kFormats);
}

Json to_json(const Result& result) {
  const bench::Totals& totals = result.totals;
  return {{"policy", result.policy},
          {"budget", result.budget},
          {"turns", totals.turns},
          {"prefilled_tokens_per_turn", totals.prefilled_per_turn()},
          {"token_hit_ratio", totals.hit_ratio()},
          {"evidence_recall", totals.evidence_recall()},
          {"number_retention", totals.retention(Critical::kNumber)},
          {"compressor_us_per_turn", totals.us_per_turn()}};
}

void print_head(std::ostream& out, const std::vector<bench::Conversation>& conversations) {
  std::size_t turns = 0, questions = 0;
  for (const bench::Conversation& conversation : conversations) {
    turns += conversation.turns.size();
    questions += conversation.questions.size();
  }
  out << conversations.size() << " conversations, " << turns << " turns, " << questions
      << " questions\n"
      << "policy                  budget  requests  longest  prefilled/turn    hit  recall"
         "  numbers  negations  identifiers  us/turn\n";
}

void print(std::ostream& out, const Result& result) {
  const bench::Totals& totals = result.totals;
  out << std::left << std::setw(22) << result.policy << std::right << std::fixed
      << std::setprecision(3) << std::setw(8) << result.budget << std::setw(10) << totals.turns
      << std::setw(9) << totals.longest_prompt << std::setprecision(1) << std::setw(16)
      << totals.prefilled_per_turn() << std::setprecision(3) << std::setw(7) << totals.hit_ratio()
      << std::setw(8) << totals.evidence_recall() << std::setw(9)
      << totals.retention(Critical::kNumber) << std::setw(11)
      << totals.retention(Critical::kNegation) << std::setw(13)
      << totals.retention(Critical::kIdentifier) << std::setprecision(1) << std::setw(9)
      << totals.us_per_turn() << std::endl;
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) throw std::runtime_error("cannot write " + path);
}

int run(const Options& options) {
  const std::vector<bench::Conversation> conversations =
      options.data.empty() ? bench::generate(options.generator)
                           : bench::read_dataset(options.dataset, options.data);
  if (!options.write_data.empty()) {
    examples::write_json(options.write_data, bench::to_json(conversations), 1);
  }
  std::unique_ptr<incipit::Engine> engine;
  if (!options.model.empty()) {
    engine = std::make_unique<incipit::Engine>(incipit::EngineOptions{.model = options.model});
  }
  const bench::PromptTokens tokens = engine != nullptr
                                         ? bench::PromptTokens(*engine)
                                         : bench::PromptTokens(incipit::rough_token_counter());

  std::ostream& out = examples::console(options.json);
  print_head(out, conversations);
  std::vector<Result> results, charted;
  const auto replay = [&](std::string_view policy, std::size_t budget) {
    incipit::CompressorOptions chosen = options.compressor;
    chosen.token_budget = budget;
    Result result = bench::replay(conversations, std::string(policy), chosen, tokens);
    print(out, result);
    return result;
  };
  for (const std::string_view policy : bench::kPolicies) {
    if (options.all_policies || options.policy == policy) {
      results.push_back(replay(policy, options.compressor.token_budget));
    }
    if (options.chart.empty()) continue;
    const std::size_t whole = options.compressor.token_budget;
    for (const std::size_t budget : {whole / 2, whole, 2 * whole}) {
      charted.push_back(replay(policy, budget));
    }
  }
  if (!options.chart.empty()) write_text(options.chart, bench::recall_chart(charted));
  if (options.json.empty()) return 0;
  Json document = Json::array();
  for (const Result& result : results) document.push_back(to_json(result));
  examples::write_json(options.json, document.size() == 1 ? document[0] : document, 2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Replays conversations through ways to fit them into a budget.", "compression_eval");
  Options options;
  declare(app, options);
  return examples::run_main(app, argc, argv, [&] { return run(options); });
}
