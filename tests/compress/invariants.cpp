// SPDX-License-Identifier: Apache-2.0
#include "compress/invariants.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "compress/segment.h"
#include "text/ascii.h"
#include "text/segmentation.h"
#include "text/utf8.h"

namespace incipit::test {
namespace {

using text::trimmed;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

const Message* find(std::span<const Message> messages, const Message& wanted) {
  for (const Message& message : messages) {
    if (same_message(message, wanted)) return &message;
  }
  return nullptr;
}

// I1, I2, I9, I10: what stays word for word.
std::string lost_text(std::span<const Message> input, const CompressedPrompt& prompt) {
  const std::string made = made_text(prompt);
  std::size_t last = input.size();
  while (last > 0 && input[last - 1].role != Role::kUser) --last;
  std::size_t first = last;
  while (first > 0 && input[first - 1].role == Role::kUser) --first;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const Message& message = input[i];
    const bool stays = message.pinned || (message.role == Role::kSystem && !message.ephemeral);
    if ((stays || (i >= first && i < last)) && find(prompt.messages, message) == nullptr) {
      return "lost: " + message.text;
    }
    if (message.constraint && find(prompt.messages, message) == nullptr &&
        !contains(made, message.text)) {
      return "lost order: " + message.text;
    }
    if (message.no_compress && !message.pinned) {
      const auto same_id = [&](const Message& other) { return other.id == message.id; };
      const auto at = std::ranges::find_if(prompt.messages, same_id);
      if (at != prompt.messages.end() && at->text != message.text)
        return "changed: " + message.text;
    }
  }
  return {};
}

// I3 and I4: calls and results.
std::string lost_results(std::span<const Message> input, const CompressedPrompt& prompt) {
  std::set<std::string> called, answered, answers;
  for (const Message& message : input) {
    if (message.role == Role::kTool) answers.insert(message.tool_call_id);
  }
  const Message* before = nullptr;
  for (const Message& message : prompt.messages) {
    if (message.role == Role::kTool) {
      if (!called.contains(message.tool_call_id)) return "a result without its call";
      if (before->role != Role::kTool && before->tool_calls.empty()) return "a result out of place";
      answered.insert(message.tool_call_id);
    }
    for (const ToolCall& call : message.tool_calls) called.insert(call.id);
    before = &message;
  }
  for (const std::string& id : called) {
    if (answers.contains(id) && !answered.contains(id)) return "a call without its result";
  }
  return {};
}

// I4: what stays stands in its order.
std::string out_of_order(std::span<const Message> input, const CompressedPrompt& prompt) {
  std::size_t at = 0;
  for (const Message& message : prompt.messages) {
    if (message.id.empty()) continue;
    while (at < input.size() && input[at].id != message.id) ++at;
    if (at == input.size()) return "out of order: " + message.text;
  }
  return {};
}

// I7: fences are paired, JSON parses, UTF-8 is valid.
std::string cut_structure(const CompressedPrompt& prompt) {
  for (const Message& message : prompt.messages) {
    if (text::valid_front(message.text) != message.text.size()) return "invalid UTF-8";
    std::size_t fences = 0;
    for (std::size_t at = 0; at < message.text.size();) {
      const std::size_t end = text::line_end(message.text, at);
      const std::string_view line = trimmed(std::string_view(message.text).substr(at, end - at));
      if (line.starts_with("```")) ++fences;
      if (line.starts_with("{\"name\": \"caf") && !nlohmann::json::accept(line)) return "cut JSON";
      at = end;
    }
    if (fences % 2 != 0) return "a cut fence in: " + message.text;
  }
  return {};
}

// I8: each sentence of what was made is one of a message.
std::string made_up_sentence(std::span<const Message> input, const CompressedPrompt& prompt) {
  std::string known;
  for (const Message& message : input) {
    known += message.text + '\n';
    for (const ToolCall& call : message.tool_calls)
      known += call.name + " " + call.arguments + '\n';
  }
  for (const Message& message : prompt.messages) {
    if (!is_made(message) || find(input, message) != nullptr) continue;
    for (const text::Span& span : text::sentences(message.text)) {
      std::string_view sentence = trimmed(span.of(message.text));
      for (const std::string_view label : {"User:", "Assistant:", "Tool:", "- "}) {
        if (sentence.starts_with(label) && !contains(known, sentence)) {
          sentence = trimmed(sentence.substr(label.size()));
        }
      }
      const bool heading = sentence == compress::kSegmentHeading ||
                           sentence == compress::kEvidenceHeading || sentence == "Still in force:";
      if (!heading && !contains(known, sentence)) return "made up: " + std::string(sentence);
    }
  }
  return {};
}

}  // namespace

std::size_t tokens_of(std::span<const Message> messages, const TokenCounter& counter) {
  std::size_t tokens = counter.prompt;
  for (const Message& message : messages) tokens += counter.message(message);
  return tokens;
}

bool same_message(const Message& a, const Message& b) {
  const auto same_call = [](const ToolCall& x, const ToolCall& y) {
    return x.id == y.id && x.name == y.name && x.arguments == y.arguments;
  };
  return a.role == b.role && a.text == b.text && a.tool_call_id == b.tool_call_id && a.id == b.id &&
         std::ranges::equal(a.tool_calls, b.tool_calls, same_call);
}

bool same_messages(std::span<const Message> a, std::span<const Message> b) {
  return std::ranges::equal(a, b, same_message);
}

bool is_made(const Message& message) {
  return message.role == Role::kSystem && (message.text.starts_with(compress::kSegmentHeading) ||
                                           message.text.starts_with(compress::kEvidenceHeading));
}

std::string made_text(const CompressedPrompt& prompt) {
  std::string text;
  for (const Message& message : prompt.messages) {
    if (is_made(message)) text += message.text + '\n';
  }
  return text;
}

std::string broken_promise(std::span<const Message> input, const CompressedPrompt& prompt,
                           const CompressorOptions& options, const TokenCounter& counter) {
  // I5 and I15.
  const std::size_t tokens = tokens_of(prompt.messages, counter);
  if (tokens != prompt.tokens_after) return "the prompt is not counted right";
  if (tokens > options.token_budget) return "over budget";
  if (prompt.tokens_before != tokens_of(input, counter)) return "the input is not counted right";
  for (std::string broken : {lost_text(input, prompt), lost_results(input, prompt),
                             out_of_order(input, prompt), cut_structure(prompt)}) {
    if (!broken.empty()) return broken;
  }
  // What arrives compressed has references and JSON without white space in it.
  return options.compress_on_arrival ? "" : made_up_sentence(input, prompt);
}

}  // namespace incipit::test
