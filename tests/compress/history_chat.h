// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_COMPRESS_HISTORY_CHAT_H_
#define INCIPIT_TESTS_COMPRESS_HISTORY_CHAT_H_

#include <string>
#include <utility>

#include "compress/conversations.h"
#include "compress/draft.h"
#include "compress/history.h"

namespace incipit::test {

/// A history by itself, of which nothing was sent yet.
struct HistoryChat {
  explicit HistoryChat(CompressorOptions some, TokenCounter count = byte_counter())
      : options(std::move(some)), counter(std::move(count)) {}

  void add(const Message& message) {
    history.add(history.arriving(
        message, 0, [](std::size_t) { return true; }, [](std::size_t) { return false; }));
  }
  void add(Role role, std::string text) {
    Message message{.role = role};
    message.text = std::move(text);
    add(message);
  }
  compress::Draft draft() const { return compress::Draft(view, {options, counter}, {}); }

  const CompressorOptions options;
  const TokenCounter counter;
  compress::History history{options, counter};
  compress::View view{history};
};

/// What arrives stays as it is.
inline CompressorOptions plain_options(CompressionPolicy policy, std::size_t budget) {
  CompressorOptions options;
  options.policy = policy;
  options.token_budget = budget;
  options.compress_on_arrival = false;
  return options;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_COMPRESS_HISTORY_CHAT_H_
