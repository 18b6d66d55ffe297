// SPDX-License-Identifier: Apache-2.0
#include "text/chat_format.h"

#include "text/chat/formats.h"

namespace incipit::text {

std::unique_ptr<const ChatFormat> recognize_chat_format(const ChatTemplate& chat) {
  // Long enough for any template that is not hostile.
  constexpr std::size_t kMaxBytes = std::size_t{1} << 16;
  if (chat.text.empty() || chat.text.size() > kMaxBytes) return nullptr;
  const TemplateText text(chat.text);
  for (const auto recognize :
       {recognize_chatml, recognize_llama3, recognize_instruct, recognize_turns}) {
    if (auto format = recognize(text, chat)) return format;
  }
  return nullptr;
}

std::string_view known_chat_formats() noexcept {
  return "ChatML, Qwen 2.5, Qwen 3, Llama 2, Llama 3, Llama 3.1, Mistral, Gemma, Phi-3 and Zephyr";
}

std::string join(std::span<const TextPiece> pieces) {
  std::string text;
  for (const TextPiece& piece : pieces) text += piece.text;
  return text;
}

}  // namespace incipit::text
