// SPDX-License-Identifier: Apache-2.0
#include "incipit/compressor.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compress/conversations.h"
#include "compress/invariants.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

Message say(Role role, std::string text) {
  Message message{.role = role};
  message.text = std::move(text);
  return message;
}

CompressorOptions with_budget(std::size_t budget) {
  CompressorOptions options;
  options.token_budget = budget;
  return options;
}

std::string crate(std::size_t i) {
  return "Crate " + std::to_string(i * 7919) + " holds lamps, and came by ship.";
}

void add_turns(Compressor& compressor, std::size_t first, std::size_t end) {
  for (std::size_t i = first; i < end; ++i) {
    compressor.add(say(Role::kUser, crate(i)));
    compressor.apply();
    compressor.add(say(Role::kAssistant, "Seen " + std::to_string(i * 31) + "."));
  }
}

TEST_CASE("options out of their range are told by name") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto rejects = [](const CompressorOptions& options, const std::string& name) {
    CAPTURE(name);
    try {
      const Compressor compressor(options, byte_counter());
      FAIL_CHECK("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK(std::string(error.what()).find("CompressorOptions::" + name) != std::string::npos);
    }
  };
  CompressorOptions options;
  options.token_budget = 0;
  rejects(options, "token_budget");
  options = {};
  options.policy = static_cast<CompressionPolicy>(17);
  rejects(options, "policy");
  const std::vector<std::pair<double CompressorOptions::*, std::string>> shares = {
      {&CompressorOptions::low_watermark, "low_watermark"},
      {&CompressorOptions::segment_ratio, "segment_ratio"},
      {&CompressorOptions::frozen_cap, "frozen_cap"},
      {&CompressorOptions::evidence_share, "evidence_share"},
      {&CompressorOptions::duplicate_threshold, "duplicate_threshold"},
      {&CompressorOptions::summary_watermark, "summary_watermark"}};
  for (const auto& [member, name] : shares) {
    for (const double value : {-0.01, 1.01, nan}) {
      options = {};
      options.*member = value;
      rejects(options, name);
    }
  }
  CHECK_THROWS_AS(Compressor({}, TokenCounter{}), Error);
}

TEST_CASE("policies and fates have names") {
  CHECK(to_string(CompressionPolicy::kNone) == "none");
  CHECK(to_string(CompressionPolicy::kDedupSummaryTruncate) == "dedup_summary_truncate");
  CHECK(to_string(static_cast<CompressionPolicy>(-1)) == "unknown");
  CHECK(to_string(MessageFate::kKept) == "kept");
  CHECK(to_string(MessageFate::kQuoted) == "quoted");
  CHECK(to_string(static_cast<MessageFate>(99)) == "unknown");
}

TEST_CASE("an empty conversation has an empty prompt") {
  Compressor compressor(with_budget(100), byte_counter());
  CHECK(compressor.size() == 0);
  CHECK(compressor.report().empty());
  CHECK_FALSE(compressor.restore("0123456789abcdef"));
  const CompressedPrompt prompt = compressor.apply();
  CHECK(prompt.messages.empty());
  CHECK(prompt.tokens_after == byte_counter().prompt);
  CHECK(prompt.ratio() == 0.0);
}

TEST_CASE("what cannot be added adds nothing") {
  TokenCounter counter = byte_counter();
  counter.message = [count = counter.message](const Message& message) {
    if (message.text == "bad") throw std::runtime_error("no tokens");
    return count(message);
  };
  Compressor compressor({}, counter);
  compressor.add(say(Role::kUser, "good"));
  const std::string before = compressor.serialize();
  CHECK_THROWS_AS(compressor.add(say(Role::kUser, "bad")), std::runtime_error);
  CHECK_THROWS_AS(compressor.plan(say(Role::kUser, "bad")), std::runtime_error);
  CHECK_THROWS_AS(compressor.add(say(static_cast<Role>(9), "who?")), Error);
  CHECK_THROWS_AS(compressor.add(say(static_cast<Role>(-1), "who?")), Error);
  CHECK(compressor.size() == 1);
  CHECK(compressor.serialize() == before);
}

TEST_CASE("a plan leaves no trace, and is what add() and apply() would give") {
  Compressor compressor(with_budget(600), byte_counter());
  add_turns(compressor, 0, 40);
  for (const std::string& text :
       {crate(77), std::string("Where is crate 7919?"), std::string(900, 'x')}) {
    const Message next = say(Role::kUser, text);
    const std::string before = compressor.serialize();
    const CompressedPrompt first = compressor.plan(next), second = compressor.plan(next);
    CHECK(compressor.serialize() == before);
    CHECK(compressor.size() == 80);
    CHECK(same_messages(first.messages, second.messages));
    Compressor other = Compressor::deserialize(before, with_budget(600), byte_counter());
    other.add(next);
    const CompressedPrompt applied = other.apply();
    CHECK(same_messages(first.messages, applied.messages));
    CHECK(first.tokens_after == applied.tokens_after);
    CHECK(first.stable_tokens == applied.stable_tokens);
    CHECK(first.invalidated_tokens == applied.invalidated_tokens);
    CHECK(first.reclaimed_tokens == applied.reclaimed_tokens);
    CHECK(first.report.size() == applied.report.size());
  }
}

TEST_CASE("a compaction's numbers add up") {
  Compressor compressor(with_budget(600), byte_counter());
  CompressedPrompt last;
  std::size_t compactions = 0;
  for (std::size_t i = 0; i < 120; ++i) {
    compressor.add(say(Role::kUser, crate(i)));
    const CompressedPrompt prompt = compressor.apply();
    if (prompt.compacted) {
      ++compactions;
      // Of what would have been sent, that much is gone: the last prompt, its reply, the new turn.
      const std::size_t grown =
          last.tokens_after + 2 * byte_counter().message(say(Role::kUser, crate(i)));
      CHECK(prompt.reclaimed_tokens >= 256);
      CHECK(prompt.reclaimed_tokens <= grown);
      CHECK(prompt.invalidated_tokens > 0);
    } else {
      CHECK(prompt.reclaimed_tokens == 0);
      CHECK(prompt.invalidated_tokens == 0);
    }
    compressor.add(say(Role::kAssistant, "Seen " + std::to_string(i * 31) + "."));
    last = prompt;
  }
  CHECK(compactions >= 5);
}

TEST_CASE("reports of prompts and of the whole agree") {
  Compressor compressor(with_budget(600), byte_counter());
  std::vector<MessageReport> known;
  for (std::size_t i = 0; i < 120; ++i) {
    compressor.add(say(Role::kUser, i % 9 == 8
                                        ? "Where is crate " + std::to_string((i - 7) * 7919) +
                                              ", and how did it come?"
                                        : crate(i)));
    const CompressedPrompt prompt = compressor.apply();
    for (const MessageReport& report : prompt.report) {
      if (report.index >= known.size()) known.resize(report.index + 1);
      known[report.index] = report;
    }
    const std::vector<MessageReport> all = compressor.report();
    REQUIRE(all.size() == known.size());
    for (std::size_t j = 0; j < all.size(); ++j) {
      CAPTURE(i, j, known[j].why, all[j].why);
      CHECK(all[j].index == j);
      CHECK(all[j].fate == known[j].fate);
      CHECK(all[j].tokens_after == known[j].tokens_after);
    }
    compressor.add(say(Role::kAssistant, "Seen " + std::to_string(i * 31) + "."));
  }
}

TEST_CASE("a compressor that was moved goes on") {
  Compressor first(with_budget(600), byte_counter());
  add_turns(first, 0, 30);
  const std::string log = first.serialize();
  Compressor second(std::move(first));
  CHECK(second.serialize() == log);
  add_turns(second, 30, 60);
  Compressor third(with_budget(100), byte_counter());
  third = std::move(second);
  Compressor replayed = Compressor::deserialize(log, with_budget(600), byte_counter());
  add_turns(replayed, 30, 60);
  CHECK(third.serialize() == replayed.serialize());
}

}  // namespace
}  // namespace incipit::test
