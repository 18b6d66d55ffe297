// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_PROMPT_TOKENS_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_PROMPT_TOKENS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "incipit/engine.h"
#include "incipit/message.h"

namespace bench {

/// Counts prompts and what they share: with a model by its token ids, else by a counter alone.
class PromptTokens {
 public:
  explicit PromptTokens(incipit::TokenCounter counter) : counter_(std::move(counter)) {}
  explicit PromptTokens(const incipit::Engine& engine)
      : counter_(engine.token_counter()), engine_(&engine) {}

  const incipit::TokenCounter& counter() const noexcept { return counter_; }
  std::size_t count(std::span<const incipit::Message> prompt) const;
  /// Tokens, in whole blocks of 16, of the longest common front of a prompt and of what the cache
  /// holds of `sent` messages.
  std::size_t shared(std::span<const incipit::Message> prompt,
                     std::span<const incipit::Message> sent) const;

 private:
  std::size_t sum(std::span<const incipit::Message> messages) const;

  incipit::TokenCounter counter_;
  const incipit::Engine* engine_ = nullptr;
};

/// A system prompt that takes 400 tokens, or as few less as words allow.
incipit::Message system_prompt(const incipit::TokenCounter& counter);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_PROMPT_TOKENS_H_
