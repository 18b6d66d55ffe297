// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_COMPRESS_CONVERSATIONS_H_
#define INCIPIT_TESTS_COMPRESS_CONVERSATIONS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "incipit/message.h"

namespace incipit::test {

/// Counts a token for every four bytes begun, of a message with its text, its calls and 4 more. Not
/// additive: the parts of a text may count more than the whole.
TokenCounter byte_counter();

/// Random numbers that are the same everywhere.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 2 + 1) {}
  std::uint64_t next();
  std::size_t below(std::size_t n) { return next() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

/// A sentence, or a line, of one of many kinds: English, Chinese, Japanese, Arabic, emoji, code,
/// JSON, logs, CRLF.
std::string some_sentence(Dice& dice);
/// Some of them; code and JSON now and then.
std::string some_text(Dice& dice, std::size_t sentences);

struct ConversationOptions {
  std::size_t turns = 10;
  std::size_t sentences = 6;  // of a message, at most
  bool tools = true;
  bool flags = true;  // pinned, no_compress, ephemeral, constraint
};
/// A system message, turns of user and assistant, calls of tools and their results.
std::vector<Message> some_conversation(Dice& dice, const ConversationOptions& options);

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_COMPRESS_CONVERSATIONS_H_
