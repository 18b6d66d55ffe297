// SPDX-License-Identifier: Apache-2.0
#include "compress/log.h"

#include <cstdint>
#include <memory>

#include "compress/conversations.h"
#include "compress/invariants.h"
#include "incipit/compressor.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

std::string some_log(CompressorOptions& options, const TokenCounter& counter) {
  Dice dice(7);
  ConversationOptions shape;
  shape.turns = 15;
  options.token_budget = 700;
  Compressor compressor(options, counter);
  for (const Message& message : some_conversation(dice, shape)) {
    compressor.add(message);
    if (message.role == Role::kUser) compressor.apply();
  }
  return compressor.serialize();
}

TEST_CASE("a log replays to the same state") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options;
  const std::string log = some_log(options, counter);
  const Compressor again = Compressor::deserialize(log, options, counter);
  CHECK(again.serialize() == log);
  const std::string empty = Compressor(options, counter).serialize();
  CHECK(log.starts_with(empty));
  CHECK(Compressor::deserialize(empty, options, counter).size() == 0);
}

TEST_CASE("a damaged log is an Error") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options;
  const std::string log = some_log(options, counter);
  const auto read = [&](const std::string& bytes) {
    try {
      Compressor::deserialize(bytes, options, counter);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      return false;
    }
    return true;
  };
  CHECK_FALSE(read(""));
  CHECK_FALSE(read("incipit"));
  CHECK_FALSE(read(log + "x"));
  for (std::size_t at = 0; at < log.size(); at += 97) {
    std::string damaged = log;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    CAPTURE(at);
    CHECK_FALSE(read(damaged));
  }
  // Cut between two records it is the log of earlier; anywhere else it is damaged.
  std::size_t readable = 0;
  for (std::size_t size = 0; size < log.size(); size += 31) {
    readable += read(log.substr(0, size)) ? 1u : 0u;
  }
  CHECK(readable < log.size() / 31 / 8);
}

TEST_CASE("a well-formed log that makes no sense is an Error") {
  const TokenCounter counter = byte_counter();
  const CompressorOptions options;
  const auto rejects = [&](compress::LogWriter& log) {
    try {
      Compressor::deserialize(log.take(), options, counter);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  Message message;
  message.text = "Hello";
  message.role = Role::kAssistant;
  const compress::History none(options, counter);
  const auto with = [&](const auto& what) {
    compress::LogWriter log;
    log.add(message);
    log.add(compress::record_of(what, none));
    return rejects(log);
  };
  const auto with_segment = [&](const compress::Segment& segment,
                                const std::vector<compress::SegmentPtr>& segments) {
    compress::LogWriter log;
    log.add(message);
    log.add(compress::record_of(segment, segments, none));
    return rejects(log);
  };
  compress::Segment segment;
  segment.end = 1;
  CHECK_FALSE(with_segment(segment, {}));
  segment.end = 2;  // there is one message
  CHECK(with_segment(segment, {}));
  segment.end = 1;
  segment.quotes.emplace_back().entry = 1;
  CHECK(with_segment(segment, {}));
  segment.quotes.front().entry = 0;
  CHECK_FALSE(with_segment(segment, {}));
  // A run of quotes of a segment that is not there.
  CHECK(with_segment(segment, {std::make_shared<const compress::Segment>(segment)}));
  message.role = Role::kUser;  // the last turn
  CHECK(with_segment(segment, {}));

  compress::Applied applied;
  CHECK_FALSE(with(applied));
  applied.window_end = 2;
  CHECK(with(applied));
  applied = {};
  applied.cut = {{1, 0, 0}};
  CHECK(with(applied));
  applied.cut = {{0, 6, 0}};  // behind the end of "Hello"
  CHECK(with(applied));
  applied.cut = {{0, 5, 0}};
  CHECK_FALSE(with(applied));
  applied.cut = {{0, 5, 0}, {0, 5, 0}};
  CHECK(with(applied));
  applied = {};
  applied.evidence.emplace_back().entry = 1;
  CHECK(with(applied));
}

TEST_CASE("a record refers to what there is, and only to that") {
  const TokenCounter counter = byte_counter();
  const CompressorOptions options;
  compress::History history(options, counter);
  Message message{.role = Role::kAssistant};
  message.text = "One sentence. Another one.";
  history.add(history.arriving(
      message, 0, [](std::size_t) { return true; }, [](std::size_t) { return false; }));
  const auto quote = [](std::size_t begin, std::string text) {
    compress::Quote one;
    one.role = Role::kAssistant;
    one.begin = begin;
    one.text = std::move(text);
    return one;
  };
  const std::vector<std::vector<compress::Quote>> cases = {
      {},
      {quote(0, "One sentence. "), quote(14, "Another one.")},
      {quote(14, "Another one."), quote(0, "One sentence. ")},  // not in order
      {quote(0, "One sentence. "), quote(0, "One sentence. ")},
      {quote(26, "")},
      {quote(27, "read {}")},  // a call of a tool
      {quote(14, "Another two.")},
      {quote(SIZE_MAX, "x")},
  };
  for (const auto& quotes : cases) {
    for (const auto& before : cases) {
      compress::Segment old, segment;
      old.end = segment.end = 1;
      old.quotes = before;
      segment.quotes = quotes;
      const std::vector<compress::SegmentPtr> segments = {
          std::make_shared<const compress::Segment>(old)};
      compress::LogWriter log;
      log.add(compress::record_of(segment, segments, history));
      const std::string bytes = log.take();
      compress::LogReader reader(bytes);
      REQUIRE(reader.next() == compress::LogReader::Record::kSegment);
      CHECK(reader.segment(segments, history).quotes == quotes);
    }
  }
}

TEST_CASE("the log grows by what is new, whatever the policy rewrites") {
  for (const auto policy : {CompressionPolicy::kWindow, CompressionPolicy::kDedupSummaryTruncate,
                            CompressionPolicy::kFrozenSegments}) {
    CompressorOptions options;
    options.policy = policy;
    options.token_budget = 1500;
    Compressor compressor(options, byte_counter());
    std::size_t text = 0;
    for (std::size_t i = 0; i < 400; ++i) {
      Message user, reply{.role = Role::kAssistant};
      user.text = "Crate " + std::to_string(i) + " holds spare parts. What else is in there?";
      reply.text = "In crate " + std::to_string(i) + " there are lamps and also some cables.";
      text += user.text.size() + reply.text.size();
      compressor.add(user);
      compressor.apply();
      compressor.add(reply);
    }
    const std::string log = compressor.serialize();
    CAPTURE(to_string(policy));
    CHECK(log.size() < 12 * text);
    const Compressor again = Compressor::deserialize(log, options, byte_counter());
    CHECK(again.serialize() == log);
    CHECK(same_messages(again.plan().messages, compressor.plan().messages));
    CHECK(again.plan().stable_tokens == compressor.plan().stable_tokens);
    CHECK(again.plan().invalidated_tokens == compressor.plan().invalidated_tokens);
  }
}

}  // namespace
}  // namespace incipit::test
