// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CHAT_H_
#define INCIPIT_CHAT_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "incipit/message.h"

namespace incipit::inline v0 {

/// What a conversation is rendered with, besides its messages. Changing any of it between turns
/// changes the front of the prompt, and so what the cache can give.
struct ChatOptions {
  /// Tools that the model may call: a JSON object each, as OpenAI's API has them ({"type":
  /// "function", "function": {"name", "description", "parameters"}}). Error{kInvalidArgument} where
  /// the model's chat format has no place for them.
  std::vector<std::string> tools = {};
  /// false: the assistant's turn opens with an empty thought, in formats that have one (Qwen 3).
  /// Not given, or true: as the chat template does by itself.
  std::optional<bool> thinking = {};
  /// Today, for formats that tell the model (Llama 3.1 and later), written as they do: "26 Jul
  /// 2024". Empty: the date that the chat template has where it knows none. The clock is never
  /// asked, since the prompt would be another one each day.
  std::string date = {};
};

/// A stretch of a rendered conversation. Only a control piece yields special tokens; each of them
/// must stand within one piece.
struct PromptPiece {
  std::string text = {};  ///< UTF-8.
  bool control = false;   ///< Written by the chat format; false: by somebody who speaks.
};

/// Renders a conversation, its beginning (BOS, where the model wants one) and the opened turn of
/// the assistant included. Must give the same for the same arguments. Is also asked for the front
/// of a conversation. May throw.
using ChatRenderer = std::function<std::vector<PromptPiece>(std::span<const Message> conversation,
                                                            const ChatOptions& options)>;

}  // namespace incipit::inline v0

#endif  // INCIPIT_CHAT_H_
