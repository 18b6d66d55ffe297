// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "base/check.h"
#include "text/chat/formats.h"
#include "text/chat/mistral_tools.h"
#include "text/chat/python_text.h"
#include "text/chat/rendering.h"

// Llama 2 and Mistral: what the user says stands between [INST] and [/INST], and the answer goes on
// from there to the end token.

namespace incipit::text {
namespace {

enum class SystemPlace {
  kFirstUser,  // in front of what the user says first
  kLastUser,   // of what the user says last, where that ends the conversation
  kLlama2,     // the same as kFirstUser, between <<SYS>> and <</SYS>>
  kOwnTurn,    // between [SYSTEM_PROMPT] and [/SYSTEM_PROMPT]
};

struct InstructStyle {
  std::string_view name = {};
  std::string bos = {}, eos = {};
  bool bos_per_question = false;
  std::string begin = {}, end = {};                // of what the user says
  std::string answer_begin = {}, answer_end = {};  // of an answer, in front of the end token
  std::string answer_after = {};                   // behind it
  bool trims_questions = false, trims_answers = false;
  SystemPlace system = SystemPlace::kFirstUser;
  std::string system_begin = {}, system_end = {};  // of kOwnTurn
  bool has_computed_system = false;  // a default one that the template makes from the date
  MistralTools tools = {};
};

class Instruct final : public ChatFormat {
 public:
  explicit Instruct(InstructStyle style) : style_(std::move(style)) {}

  std::string_view name() const noexcept override { return style_.name; }

  std::vector<TextPiece> render(std::span<const Message> conversation,
                                const ChatOptions& options) const override {
    check_not_empty(conversation);
    if (!style_.tools.is_present()) refuse_tools(name(), conversation, options);
    const bool given = conversation.front().role == Role::kSystem;
    if (style_.has_computed_system && !given) {
      base::throw_error(ErrorCode::kInvalidArgument,
                        "the model's chat template makes a default system message from the date, "
                        "which incipit does not; give a system message, which may be empty");
    }
    Rendering out;
    if (!style_.bos_per_question) out.control(style_.bos);
    std::string system;
    if (given && style_.system != SystemPlace::kOwnTurn) {
      system = conversation.front().text;
      conversation = conversation.subspan(1);
    }
    append_messages(given, system, conversation, options, out);
    return out.take();
  }

  std::vector<TextPiece> render_turn(const Message& message) const override {
    if (!style_.tools.is_present()) refuse_tools(name(), message);
    Rendering out;
    if (message.role == Role::kSystem && style_.system != SystemPlace::kOwnTurn) {
      append_question(message.text, out);
    } else {
      append_message(message, out);
    }
    return out.take();
  }

 private:
  /// All but a system message in front, which is `system` where `given`.
  void append_messages(bool given, std::string_view system, std::span<const Message> conversation,
                       const ChatOptions& options, Rendering& out) const {
    const std::vector<Message> messages =
        style_.system == SystemPlace::kOwnTurn
            ? std::vector(conversation.begin(), conversation.end())
            : fold_systems(conversation);
    const Message* const last_question = last_user(messages);
    bool is_pending = given && style_.system != SystemPlace::kOwnTurn;
    const bool waits = style_.system == SystemPlace::kLastUser;
    for (const Message& message : messages) {
      if (message.role != Role::kUser) {
        append_message(message, out);
        continue;
      }
      if (!options.tools.empty() && message.text == last_question->text) {
        style_.tools.append_offered(options, out);
      }
      const bool is_place = is_pending && (!waits || &message == &messages.back());
      std::string question;
      if (is_place) append_front(system, question);
      append_question(question += message.text, out);
      if (is_place) is_pending = false;
    }
    // Nothing that the user says could take it.
    if (is_pending && !waits) append_question(system, out);
  }

  static const Message* last_user(const std::vector<Message>& messages) noexcept {
    const auto found = std::find_if(messages.rbegin(), messages.rend(), [](const Message& message) {
      return message.role == Role::kUser;
    });
    return found == messages.rend() ? nullptr : &*found;
  }

  void append_front(std::string_view system, std::string& question) const {
    const bool is_marked = style_.system == SystemPlace::kLlama2;
    if (is_marked) question += "<<SYS>>\n";
    question += system;
    question += is_marked ? "\n<</SYS>>\n\n" : "\n\n";
  }

  void append_question(std::string_view question, Rendering& out) const {
    if (style_.bos_per_question) out.control(style_.bos);
    out.control(style_.begin);
    out.text(style_.trims_questions ? python_stripped(question) : question);
    out.control(style_.end);
  }

  void append_message(const Message& message, Rendering& out) const {
    if (message.role == Role::kUser) {
      append_question(message.text, out);
    } else if (message.role == Role::kSystem) {
      out.control(style_.system_begin).text(message.text).control(style_.system_end);
    } else if (message.role == Role::kTool) {
      style_.tools.append_result(message, out);
    } else if (!message.tool_calls.empty()) {
      style_.tools.append_calls(message, out);
      out.control(style_.eos);
    } else {
      out.control(style_.answer_begin);
      out.text(style_.trims_answers ? python_stripped(message.text)
                                    : std::string_view(message.text));
      out.control(style_.answer_end).control(style_.eos).control(style_.answer_after);
    }
  }

  InstructStyle style_;
};

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> values) {
  return std::find(values.begin(), values.end(), text) != values.end();
}

/// How the template writes an answer; false: in a way that is not known.
bool read_answer(const TemplateText& text, InstructStyle& style) {
  if (text.has("' '+message.content|trim+eos_token")) {
    style.answer_begin.push_back(' ');
    style.trims_answers = true;
  } else if (text.has("' '+message.content+eos_token")) {
    style.answer_begin.push_back(' ');
  } else if (text.has("message.content+eos_token+' '")) {
    style.answer_after.push_back(' ');
  } else {
    return text.has("message.content+eos_token");
  }
  return true;
}

void read_system(const TemplateText& text, InstructStyle& style) {
  style.system_begin = text.literal("[SYSTEM_PROMPT]");
  style.system_end = text.literal("[/SYSTEM_PROMPT]");
  if (!style.system_begin.empty()) {
    style.system = SystemPlace::kOwnTurn;
    style.has_computed_system = text.has("default_system_message=");
  } else if (text.has("loop.lastandsystem_messageisdefined")) {
    style.system = SystemPlace::kLastUser;
  }
}

std::unique_ptr<const ChatFormat> recognize_llama2(const TemplateText& text,
                                                   const ChatTemplate& chat) {
  if (!text.has("bos_token+'[INST] '+content.strip()+' [/INST]'") ||
      !text.has("' '+content.strip()+' '+eos_token") || !text.has(R"('<<SYS>>\n'+)") ||
      text.has("system_message='")) {  // a default that depends on what the messages hold
    return nullptr;
  }
  return std::make_unique<const Instruct>(InstructStyle{.name = "Llama 2",
                                                        .bos = chat.bos,
                                                        .eos = chat.eos,
                                                        .bos_per_question = true,
                                                        .begin = "[INST] ",
                                                        .end = " [/INST]",
                                                        .answer_begin = " ",
                                                        .answer_end = " ",
                                                        .trims_questions = true,
                                                        .trims_answers = true,
                                                        .system = SystemPlace::kLlama2});
}

}  // namespace

std::unique_ptr<const ChatFormat> recognize_instruct(const TemplateText& text,
                                                     const ChatTemplate& chat) {
  if (auto llama2 = recognize_llama2(text, chat)) return llama2;
  InstructStyle style;
  style.name = "Mistral";
  style.bos = chat.bos;
  style.eos = chat.eos;
  style.begin = text.literal("[INST]");
  style.end = text.literal("[/INST]");
  if (!is_one_of(style.begin, {"[INST]", "[INST] ", " [INST] "}) ||
      !is_one_of(style.end, {"[/INST]", " [/INST]"}) || !text.has("bos_token}}") ||
      text.has("bos_token+") || !read_answer(text, style)) {
    return nullptr;
  }
  read_system(text, style);
  if (style.system == SystemPlace::kOwnTurn &&
      (!is_one_of(style.system_begin, {"[SYSTEM_PROMPT]", "[SYSTEM_PROMPT] "}) ||
       style.system_end != "[/SYSTEM_PROMPT]")) {
    return nullptr;
  }
  style.tools = read_mistral_tools(text);
  return std::make_unique<const Instruct>(std::move(style));
}

}  // namespace incipit::text
