// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_CHAT_PROMPT_H_
#define INCIPIT_ENGINE_CHAT_PROMPT_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "incipit/chat.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace incipit::engine {

/// A conversation as a model reads it.
struct ChatPrompt {
  std::vector<TokenId> ids = {};
  std::size_t rewritten_tokens = 0;  // as in GenerateResult
};

/// A whole conversation. What its last answer was asked for with is worked out from the messages,
/// to count rewritten_tokens.
ChatPrompt make_chat_prompt(const text::ChatFormat& format, const text::Tokenizer& tokenizer,
                            std::span<const Message> conversation, const ChatOptions& options);

/// The prompts of one conversation, turn by turn. Keeps the ids of what was generated wherever the
/// chat format leaves an answer as the model gave it.
class ChatHistory {
 public:
  using End = text::Tokenizer::StablePrefix::End;

  ChatHistory(const text::ChatFormat& format, const text::Tokenizer& tokenizer)
      : format_(format), tokenizer_(tokenizer) {}

  /// The prompt that answers all messages so far and `added`. Changes nothing.
  struct Turn {
    std::vector<Message> messages = {};
    std::string text = {};  // of the rendered prompt
    ChatPrompt prompt = {};
    End end = End::kNothing;  // of the prompt
    std::size_t kept = 0;     // marks of the history that still hold
  };
  Turn next(std::span<const Message> added, const ChatOptions& options) const;

  /// Takes a turn that was answered, and the answer.
  void add(Turn turn, std::string answer, std::span<const TokenId> answer_ids);

  std::span<const TokenId> ids() const noexcept { return ids_; }

 private:
  // A place in the text where tokens end, whatever follows: of prompts and of answers.
  struct Mark {
    std::size_t bytes = 0, ids = 0;
    End end = End::kNothing;  // what stands in front of it
  };

  const text::ChatFormat& format_;
  const text::Tokenizer& tokenizer_;
  std::vector<Message> messages_;
  std::string text_;          // as rendered, the last answer included
  std::vector<TokenId> ids_;  // of text_
  std::vector<Mark> marks_;   // in order
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_CHAT_PROMPT_H_
