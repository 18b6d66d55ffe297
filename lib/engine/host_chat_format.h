// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_HOST_CHAT_FORMAT_H_
#define INCIPIT_ENGINE_HOST_CHAT_FORMAT_H_

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/chat_format.h"

namespace incipit::engine {

/// A chat format that the host renders. A message by itself is counted as a conversation of one.
class HostChatFormat final : public text::ChatFormat {
 public:
  explicit HostChatFormat(ChatRenderer renderer) : renderer_(std::move(renderer)) {}

  std::string_view name() const noexcept override { return "host"; }

  std::vector<text::TextPiece> render(std::span<const Message> conversation,
                                      const ChatOptions& options) const override {
    std::vector<text::TextPiece> pieces;
    for (PromptPiece& piece : renderer_(conversation, options)) {
      pieces.push_back({std::move(piece.text), piece.control});
    }
    return pieces;
  }

  std::vector<text::TextPiece> render_turn(const Message& message) const override {
    return render(std::span(&message, 1), {});
  }

 private:
  const ChatRenderer renderer_;
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_HOST_CHAT_FORMAT_H_
