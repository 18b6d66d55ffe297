// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_FORMAT_H_
#define INCIPIT_TEXT_CHAT_FORMAT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/message.h"
#include "text/tokenizer.h"

namespace incipit::text {

/// How a model was trained to read a conversation. Rendering only ever appends: the text of the
/// first n messages is a prefix of the text of more.
class ChatFormat {
 public:
  /// Recognises the chat template that a model file carries (ChatML so far); nullopt: unknown.
  static std::optional<ChatFormat> recognize(std::string_view chat_template);

  /// The messages from the beginning of a conversation on, with the assistant's turn opened. Adds
  /// the template's default system message where it has one and the first message is no system
  /// message. Throws Error{kInvalidArgument} for no messages.
  std::vector<TextPiece> render(std::span<const Message> conversation) const;
  /// One message's turn, as it stands in render().
  std::vector<TextPiece> render_turn(const Message& message) const;
  /// What comes between an answer that the model gave and its next one: the end of the turn, the
  /// messages, and the assistant's turn opened.
  std::vector<TextPiece> render_next(std::span<const Message> messages) const;

 private:
  std::string default_system_;
};

/// The pieces as one text.
std::string join(std::span<const TextPiece> pieces);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_FORMAT_H_
