// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_FORMAT_H_
#define INCIPIT_TEXT_CHAT_FORMAT_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/chat.h"
#include "incipit/message.h"
#include "text/tokenizer.h"

namespace incipit::text {

/// What a model file says about conversations.
struct ChatTemplate {
  std::string text = {};  // Jinja; empty: none
  std::string bos = {};   // the tokens that it calls bos_token and eos_token; empty: none
  std::string eos = {};
};

/// How a model was trained to read a conversation. Immutable, so all members may be called
/// concurrently.
///
/// Rendering only appends where the model's own template does: the text of the first n messages is
/// then a prefix of the text of more. Where that template rewrites earlier turns, so does this.
class ChatFormat {
 public:
  virtual ~ChatFormat() = default;

  /// "ChatML", "Llama 3"
  virtual std::string_view name() const noexcept = 0;

  /// The messages from the beginning of a conversation on, BOS included, with the assistant's turn
  /// opened. Throws Error{kInvalidArgument} for no messages, and for tools where the format has
  /// none.
  virtual std::vector<TextPiece> render(std::span<const Message> conversation,
                                        const ChatOptions& options) const = 0;

  /// One message's turn by itself: what the message adds to a conversation, or a little more where
  /// the format folds it into another message's turn.
  virtual std::vector<TextPiece> render_turn(const Message& message) const = 0;
};

/// Recognises the chat template that a model file carries; null: unknown. Reads its marks (special
/// tokens and the text around them), never executes it. O(length); longer than 64 KiB is unknown.
std::unique_ptr<const ChatFormat> recognize_chat_format(const ChatTemplate& chat);

/// The formats that recognize_chat_format() knows, for messages: "ChatML, Llama 2, ...".
std::string_view known_chat_formats() noexcept;

/// The pieces as one text.
std::string join(std::span<const TextPiece> pieces);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_FORMAT_H_
