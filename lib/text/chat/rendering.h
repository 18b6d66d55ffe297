// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_RENDERING_H_
#define INCIPIT_TEXT_CHAT_RENDERING_H_

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "incipit/chat.h"
#include "incipit/message.h"
#include "text/tokenizer.h"

namespace incipit::text {

/// Collects the pieces of a rendered conversation.
class Rendering {
 public:
  Rendering& control(std::string_view text) {
    if (!text.empty()) pieces_.push_back({std::string(text), true});
    return *this;
  }
  Rendering& text(std::string_view text) {
    if (!text.empty()) pieces_.push_back({std::string(text), false});
    return *this;
  }
  std::vector<TextPiece> take() { return std::move(pieces_); }

 private:
  std::vector<TextPiece> pieces_;
};

/// Throws Error{kInvalidArgument} for a conversation without messages.
void check_not_empty(std::span<const Message> conversation);

/// Throws Error{kInvalidArgument} where a message calls tools or answers a call, or the options
/// offer some: for formats that have none.
void refuse_tools(std::string_view format, std::span<const Message> conversation,
                  const ChatOptions& options);
void refuse_tools(std::string_view format, const Message& message);
/// The same for offered tools alone.
void refuse_offered_tools(std::string_view format, const ChatOptions& options);

/// ChatOptions::tools, parsed. Throws Error{kInvalidArgument} for one that is no JSON object, is
/// nested deeper than 32 levels, or makes them longer than 1 MiB together.
std::vector<nlohmann::ordered_json> parse_tools(const ChatOptions& options);

/// JSON text of a call's arguments, as the model wrote it; "{}" where it wrote none.
std::string_view arguments_of(const ToolCall& call) noexcept;
/// A text as a JSON string, quotes included.
std::string quoted_json(std::string_view text);

/// For formats without a system role: each system message stands in front of the next message of
/// the user, apart by an empty line, or is a message of the user itself where none follows.
std::vector<Message> fold_systems(std::span<const Message> conversation);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_RENDERING_H_
