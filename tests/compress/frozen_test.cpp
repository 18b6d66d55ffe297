// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "compress/conversations.h"
#include "compress/invariants.h"
#include "compress/segment.h"
#include "incipit/compressor.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

Message say(Role role, std::string text) {
  Message message{.role = role};
  message.text = std::move(text);
  return message;
}

std::string crate(std::size_t i) {
  std::string text("Crate ");
  text += std::to_string(i);
  text += " holds lamps, cables and other spare parts for us.";
  return text;
}

std::string seen(std::size_t i) {
  std::string text("Seen: ");
  text += std::to_string(i * 7919);
  return text;
}

TEST_CASE("what fits as it is never becomes too long by a segment") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options;
  options.token_budget = 1000;
  // An order takes more in a segment, with its headings, than by itself.
  for (std::size_t size = 3600; size <= 4000; size += 4) {
    std::vector<Message> input = {say(Role::kUser, "In French"), say(Role::kAssistant, "Ok"),
                                  say(Role::kUser, std::string(size, 'x'))};
    input[0].constraint = true;
    Compressor compressor(options, counter);
    for (const Message& message : input) compressor.add(message);
    CAPTURE(size);
    if (tokens_of(input, counter) > options.token_budget) continue;
    CompressedPrompt prompt;
    REQUIRE_NOTHROW(prompt = compressor.apply());
    CHECK(broken_promise(input, prompt, options, counter) == "");
  }
}

TEST_CASE("options at their ends") {
  const TokenCounter counter = byte_counter();
  std::vector<Message> input;
  for (std::size_t i = 0; i < 60; ++i) {
    input.push_back(say(Role::kUser, crate(i)));
    input.push_back(say(Role::kAssistant, seen(i)));
  }
  const auto after = [&](const CompressorOptions& options) {
    Compressor compressor(options, counter);
    CompressedPrompt prompt;
    std::vector<Message> so_far;
    for (const Message& message : input) {
      compressor.add(message);
      so_far.push_back(message);
      if (message.role == Role::kUser) prompt = compressor.apply();
      if (message.role == Role::kUser) REQUIRE(prompt.tokens_after <= options.token_budget);
    }
    return prompt;
  };
  CompressorOptions options;
  for (const auto policy :
       {CompressionPolicy::kNone, CompressionPolicy::kWindow,
        CompressionPolicy::kDedupSummaryTruncate, CompressionPolicy::kFrozenSegments}) {
    options.policy = policy;
    options.token_budget = SIZE_MAX;  // no limit
    options.low_watermark = options.summary_watermark = options.frozen_cap = 1;
    CHECK(after(options).messages.size() == input.size() - 1);
  }
  options.token_budget = 600;
  for (const double share : {0.0, 1.0}) {
    options.low_watermark = options.frozen_cap = options.segment_ratio = share;
    after(options);
  }
  // Room for endless turns is all there is: the low watermark holds.
  options = {};
  options.token_budget = 600;
  options.headroom_turns = 1000;
  const CompressedPrompt expected = after(options);
  for (const std::size_t turns : {SIZE_MAX, SIZE_MAX / 25 + 1, SIZE_MAX / 26 + 1}) {
    options.headroom_turns = turns;
    CHECK(same_messages(after(options).messages, expected.messages));
  }
  options.min_reclaim = SIZE_MAX;
  after(options);
}

TEST_CASE("an order binds, even where somebody else said it first") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options;
  options.token_budget = 500;
  const std::string order = "Never push to the main branch.";
  Compressor compressor(options, counter);
  compressor.add(say(Role::kUser, "What do you suggest?"));
  compressor.add(say(Role::kAssistant, order));
  compressor.add(say(Role::kUser, order));
  compressor.add(say(Role::kAssistant, "Understood."));
  CompressedPrompt prompt;
  for (std::size_t i = 0; i < 100; ++i) {
    compressor.add(say(Role::kUser, crate(i)));
    prompt = compressor.apply();
    compressor.add(say(Role::kAssistant, seen(i)));
  }
  const std::string made = made_text(prompt);
  const std::size_t orders = made.find("Still in force:");
  REQUIRE(orders != std::string::npos);
  CHECK(made.find(order, orders) != std::string::npos);
}

TEST_CASE("merged segments stay few, in order, and within their share") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options;
  options.token_budget = 1000;
  Compressor compressor(options, counter);
  std::size_t compactions = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    compressor.add(say(Role::kUser, crate(i)));
    const CompressedPrompt prompt = compressor.apply();
    compactions += prompt.compacted ? 1u : 0u;
    std::size_t segments = 0, tokens = 0;
    for (const Message& message : prompt.messages) {
      if (!message.text.starts_with(compress::kSegmentHeading)) continue;
      ++segments;
      tokens += counter.message(message);
    }
    if (prompt.compacted) {
      CHECK(segments <= 16);
      CHECK(tokens <= options.token_budget / 2);
    }
    compressor.add(say(Role::kAssistant, seen(i)));
  }
  CHECK(compactions > 20);
}

TEST_CASE("calls that wait for results stay whole, even without a user") {
  const TokenCounter counter = byte_counter();
  for (const auto policy : {CompressionPolicy::kWindow, CompressionPolicy::kDedupSummaryTruncate,
                            CompressionPolicy::kFrozenSegments}) {
    CompressorOptions options;
    options.policy = policy;
    options.token_budget = 300;
    options.recent_turns_kept = 0;
    options.compress_on_arrival = false;
    Compressor compressor(options, counter);
    std::vector<Message> input = {say(Role::kSystem, "Use tools.")};
    compressor.add(input.back());
    for (std::size_t i = 0; i < 40; ++i) {
      Message call = say(Role::kAssistant, "");
      // Some calls are so long that a window has no place for them.
      std::string path(i % 7 == 3 ? 900 : 100, 'p');
      path.insert(0, "{\"path\": \"").append("\"}");
      call.tool_calls.push_back({std::to_string(i), "read", path});
      Message result = say(Role::kTool, "It says: ");
      result.text += std::to_string(i);
      result.tool_call_id = call.tool_calls.front().id;
      for (const Message& message : {call, result}) {
        compressor.add(message);
        input.push_back(message);
        CompressedPrompt prompt;
        try {
          prompt = compressor.apply();
        } catch (const Error& error) {
          REQUIRE(error.code() == ErrorCode::kBudgetInfeasible);
          continue;
        }
        CAPTURE(to_string(policy), i);
        CHECK(broken_promise(input, prompt, options, counter) == "");
      }
    }
  }
}

}  // namespace
}  // namespace incipit::test
