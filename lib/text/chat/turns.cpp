// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "text/chat/formats.h"
#include "text/chat/python_text.h"
#include "text/chat/rendering.h"
#include "text/role_name.h"

// Formats that are nothing but turns with a begin and an end: Gemma, Phi-3 and Zephyr.

namespace incipit::text {
namespace {

/// A turn is begin, role, separator, text, end.
struct TurnStyle {
  std::string_view name = {};
  std::string bos = {};
  std::string begin = {}, separator = {}, end = {};
  std::string_view assistant = "assistant";
  bool folds_systems = false;       // there is no system role; all other texts are trimmed
  bool skips_empty_system = false;  // such a turn is left out
};

class Turns final : public ChatFormat {
 public:
  explicit Turns(TurnStyle style) : style_(std::move(style)) {}

  std::string_view name() const noexcept override { return style_.name; }

  std::vector<TextPiece> render(std::span<const Message> conversation,
                                const ChatOptions& options) const override {
    check_not_empty(conversation);
    refuse_tools(name(), conversation, options);
    Rendering out;
    out.control(style_.bos);
    if (style_.folds_systems) {
      for (const Message& message : folded(conversation)) append_turn(message, out);
    } else {
      for (const Message& message : conversation) append_turn(message, out);
    }
    out.control(style_.begin + std::string(style_.assistant) + style_.separator);
    return out.take();
  }

  std::vector<TextPiece> render_turn(const Message& message) const override {
    refuse_tools(name(), message);
    Rendering out;
    append_turn(message, out);
    return out.take();
  }

 private:
  // What the user says is trimmed by itself, not with the system's text in front of it.
  static std::vector<Message> folded(std::span<const Message> conversation) {
    std::vector<Message> messages(conversation.begin(), conversation.end());
    for (Message& message : messages) {
      if (message.role != Role::kSystem) {
        message.text = std::string(python_stripped(message.text));
      }
    }
    return fold_systems(messages);
  }

  void append_turn(const Message& message, Rendering& out) const {
    const bool is_system = message.role == Role::kSystem;
    if (is_system && style_.skips_empty_system && message.text.empty()) return;
    std::string_view role = role_name(message.role);
    if (message.role == Role::kAssistant) role = style_.assistant;
    if (is_system && style_.folds_systems) role = role_name(Role::kUser);
    out.control(style_.begin + std::string(role) + style_.separator);
    out.text(message.text).control(style_.end);
  }

  TurnStyle style_;
};

std::unique_ptr<const ChatFormat> make(TurnStyle style) {
  return std::make_unique<const Turns>(std::move(style));
}

}  // namespace

std::unique_ptr<const ChatFormat> recognize_turns(const TemplateText& text,
                                                  const ChatTemplate& chat) {
  std::string bos = text.has("bos_token") ? chat.bos : std::string();
  if (text.has("'<start_of_turn>'+role+'\\n'+") && text.has("<end_of_turn>\\n'") &&
      text.has("message.content|trim") && text.has("'<start_of_turn>model\\n'") &&
      !text.has("tool")) {
    return make({.name = "Gemma",
                 .bos = std::move(bos),
                 .begin = "<start_of_turn>",
                 .separator = "\n",
                 .end = "<end_of_turn>\n",
                 .assistant = "model",
                 .folds_systems = true});
  }
  const bool joins_end =
      text.has("+message.content+'<|end|>\\n'") || text.has("+message.content+'<|end|>'+'\\n'");
  const bool is_generic = text.has("'<|'+message.role+'|>'+'\\n'+");
  if (joins_end && text.has("<|assistant|>") &&
      (is_generic || text.has("'<|user|>\\n'+") || text.has("'<|user|>'+'\\n'+"))) {
    return make({.name = "Phi-3",
                 .bos = std::move(bos),
                 .begin = "<|",
                 .separator = "|>\n",
                 .end = "<|end|>\n",
                 .skips_empty_system = text.has("=='system'andmessage.content") ||
                                       !(is_generic || text.has("<|system|>"))});
  }
  if (text.has("'<|user|>\\n'+message.content+eos_token") &&
      text.has("'<|assistant|>\\n'+message.content+eos_token") && !text.has("bos_token") &&
      !chat.eos.empty()) {
    return make(
        {.name = "Zephyr", .bos = "", .begin = "<|", .separator = "|>\n", .end = chat.eos + "\n"});
  }
  return nullptr;
}

}  // namespace incipit::text
