// SPDX-License-Identifier: Apache-2.0
#include "compress/log.h"

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
  compress::Segment segment;
  segment.end = 2;  // there is one message
  compress::LogWriter no_such_message;
  no_such_message.add(message);
  no_such_message.add(segment);
  CHECK(rejects(no_such_message));

  segment.end = 1;
  segment.quotes.emplace_back().entry = 1;
  compress::LogWriter quotes_another;
  quotes_another.add(message);
  quotes_another.add(segment);
  CHECK(rejects(quotes_another));

  compress::Applied applied;
  applied.kept = 1;  // nothing was sent before
  compress::LogWriter keeps_nothing;
  keeps_nothing.add(message);
  keeps_nothing.add(applied);
  CHECK(rejects(keeps_nothing));
}

}  // namespace
}  // namespace incipit::test
