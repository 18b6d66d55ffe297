// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_PROMPT_ENCODER_H_
#define INCIPIT_TEXT_PROMPT_ENCODER_H_

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace incipit::text {

/// Tokenizes static text + dynamic prompt as one string, and remembers the stable tokens of the
/// last few static texts, so that a repeated one costs a comparison. Thread-safe.
class PromptEncoder {
 public:
  /// Remembers at most `capacity` static texts. The tokenizer must outlive it.
  PromptEncoder(const Tokenizer& tokenizer, std::size_t capacity);

  /// Equals tokenizer.encode(static_text + dynamic_prompt).
  std::vector<TokenId> encode(std::string_view static_text, std::string_view dynamic_prompt);

 private:
  struct Known {
    std::string text;
    Tokenizer::StablePrefix prefix;
  };
  std::shared_ptr<const Known> known(std::string_view static_text);
  std::shared_ptr<const Known> find(std::string_view static_text);  // under mutex_; null: unknown

  const Tokenizer& tokenizer_;
  const std::size_t capacity_;
  std::mutex mutex_;
  std::list<std::shared_ptr<const Known>> known_;  // most recent first; guarded by mutex_
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_PROMPT_ENCODER_H_
