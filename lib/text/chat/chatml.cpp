// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "text/chat/formats.h"
#include "text/chat/python_text.h"
#include "text/chat/rendering.h"
#include "text/chat/thoughts.h"
#include "text/role_name.h"

// ChatML, and what Qwen adds to it: tools and thoughts.

namespace incipit::text {
namespace {

constexpr std::string_view kTurnBegin = "<|im_start|>";
constexpr std::string_view kTurnEnd = "<|im_end|>\n";
constexpr std::string_view kResultBegin = "<tool_response>", kResultEnd = "</tool_response>";

/// Text of the template around the tools that it offers; empty: it offers none.
struct ToolTexts {
  std::string begin, end;
  bool is_present() const noexcept { return !begin.empty() && !end.empty(); }
};

class Chatml final : public ChatFormat {
 public:
  Chatml(std::string default_system, ToolTexts tools, bool has_thoughts)
      : default_system_(std::move(default_system)),
        tools_(std::move(tools)),
        has_thoughts_(has_thoughts) {}

  std::string_view name() const noexcept override {
    if (has_thoughts_) return "Qwen 3";
    return tools_.is_present() ? "Qwen 2.5" : "ChatML";
  }

  std::vector<TextPiece> render(std::span<const Message> conversation,
                                const ChatOptions& options) const override {
    check_not_empty(conversation);
    if (!tools_.is_present()) refuse_offered_tools(name(), options);
    Rendering out;
    std::size_t i = append_system(conversation, options, out);
    const std::size_t question = has_thoughts_ ? last_question(conversation) : 0;
    for (; i < conversation.size(); ++i) {
      const Message& message = conversation[i];
      if (is_result(message)) {
        i = append_results(conversation, i, out);
      } else if (has_thoughts_ && message.role == Role::kAssistant) {
        append_thinker(message, i > question, i + 1 == conversation.size(), out);
      } else {
        append_turn(message, message.text, out);
      }
    }
    out.control(std::string(kTurnBegin) + "assistant\n");
    if (has_thoughts_ && options.thinking == false) out.control("<think>\n\n</think>\n\n");
    return out.take();
  }

  std::vector<TextPiece> render_turn(const Message& message) const override {
    Rendering out;
    if (is_result(message)) {
      append_results(std::span(&message, 1), 0, out);
    } else {
      append_turn(message, message.text, out);
    }
    if (!has_thoughts_ || message.role != Role::kAssistant) return out.take();
    // As it stands, or with the thought shown as the model's own: the longer of the two.
    Rendering shown;
    append_thinker(message, true, true, shown);
    std::vector<TextPiece> plain = out.take(), thinking = shown.take();
    return join(thinking).size() > join(plain).size() ? thinking : plain;
  }

 private:
  bool is_result(const Message& message) const noexcept {
    return tools_.is_present() && message.role == Role::kTool;
  }

  /// The system turn, which the first message may be; returns how many messages it took.
  std::size_t append_system(std::span<const Message> conversation, const ChatOptions& options,
                            Rendering& out) const {
    const bool given = conversation.front().role == Role::kSystem;
    if (options.tools.empty()) {
      if (!given && !default_system_.empty()) {
        append_turn({}, default_system_, out, Role::kSystem);
      }
      return 0;
    }
    out.control(std::string(kTurnBegin) + "system\n");
    out.text(given ? conversation.front().text : default_system_);
    if (given && !tools_.begin.starts_with('\n')) out.control("\n\n");
    out.control(tools_.begin);
    for (const auto& tool : parse_tools(options)) out.control("\n").text(python_json(tool));
    out.control(tools_.end);
    return given ? 1 : 0;
  }

  void append_turn(const Message& message, std::string_view text, Rendering& out) const {
    append_turn(message, text, out, message.role);
  }

  void append_turn(const Message& message, std::string_view text, Rendering& out, Role role) const {
    out.control(std::string(kTurnBegin) + std::string(role_name(role)) + '\n');
    append_body(message, text, out);
    out.control(kTurnEnd);
  }

  void append_body(const Message& message, std::string_view text, Rendering& out) const {
    if (!tools_.is_present()) {  // the plain form of tool calls, which the model was not trained on
      Message shown = message;
      shown.text = text;
      out.text(shown_text(shown));
      return;
    }
    out.text(text);
    bool is_first = text.empty();
    for (const ToolCall& call : message.tool_calls) {
      out.control(is_first ? "<tool_call>\n" : "\n<tool_call>\n");
      out.text("{\"name\": " + quoted_json(call.name) +
               ", \"arguments\": " + std::string(arguments_of(call)) + "}");
      out.control("\n</tool_call>");
      is_first = false;
    }
  }

  /// Results that follow each other share a turn of the user; returns the index of the last.
  static std::size_t append_results(std::span<const Message> conversation, std::size_t i,
                                    Rendering& out) {
    out.control(std::string(kTurnBegin) + "user");
    for (;; ++i) {
      out.control('\n' + std::string(kResultBegin) + '\n').text(conversation[i].text);
      out.control('\n' + std::string(kResultEnd));
      if (i + 1 == conversation.size() || conversation[i + 1].role != Role::kTool) break;
    }
    out.control(kTurnEnd);
    return i;
  }

  /// A turn whose thought is shown while its question is still being worked on.
  void append_thinker(const Message& message, bool is_live, bool is_last, Rendering& out) const {
    const Thoughts parts = split_thoughts(message.text);
    if (!is_live || (!is_last && parts.thought.empty())) {
      append_turn(message, parts.rest, out);
      return;
    }
    out.control(std::string(kTurnBegin) + "assistant\n<think>\n");
    out.text(without_line_feeds(parts.thought)).control("\n</think>\n\n");
    append_body(message, without_leading_line_feeds(parts.rest), out);
    out.control(kTurnEnd);
  }

  /// The last message of the user that is no result of a tool in disguise; the last message of all
  /// where there is none.
  static std::size_t last_question(std::span<const Message> conversation) {
    for (std::size_t i = conversation.size(); i-- > 0;) {
      const Message& message = conversation[i];
      if (message.role == Role::kUser &&
          !(message.text.starts_with(kResultBegin) && message.text.ends_with(kResultEnd))) {
        return i;
      }
    }
    return conversation.size() - 1;
  }

  std::string default_system_;
  ToolTexts tools_;
  bool has_thoughts_;
};

/// A message is its turn's begin, role, line end, content, turn's end, line end.
bool renders_chatml_turns(std::string_view code) {
  constexpr std::string_view kBegin = R"('<|im_start|>'+message.role+'\n'+)";
  constexpr std::array<std::string_view, 2> kContents = {"message.content", "content"};
  constexpr std::array<std::string_view, 2> kEnds = {R"(+'<|im_end|>'+'\n')", R"(+'<|im_end|>\n')"};
  for (std::size_t at = code.find(kBegin); at != std::string_view::npos;
       at = code.find(kBegin, at + 1)) {
    const std::string_view turn = code.substr(at + kBegin.size());
    for (const std::string_view content : kContents) {
      if (!turn.starts_with(content)) continue;
      const std::string_view rest = turn.substr(content.size());
      if (std::any_of(kEnds.begin(), kEnds.end(),
                      [&](std::string_view end) { return rest.starts_with(end); })) {
        return true;
      }
    }
  }
  return false;
}

/// The text of the system turn that the template spells out as one literal; empty: none. nullopt
/// where a literal begins a system turn but does not end it.
std::optional<std::string> default_system_of(const TemplateText& text) {
  constexpr std::string_view kBegin = "<|im_start|>system\n";
  for (const std::string& literal : text.literals()) {
    const std::size_t at = literal.find(kBegin);
    if (at == std::string::npos || at + kBegin.size() == literal.size()) continue;
    const std::string_view rest = std::string_view(literal).substr(at + kBegin.size());
    const std::size_t end = rest.find("<|im_end|>");
    if (end == std::string_view::npos) return std::nullopt;
    return std::string(rest.substr(0, end));
  }
  return std::string();
}

/// Qwen's tools, where the template has them and renders calls and results as Qwen does.
ToolTexts tool_texts_of(const TemplateText& text) {
  constexpr std::array<std::string_view, 3> kForms = {
      R"(<tool_call>\n{"name": "')", R"('", "arguments": ')", R"('\n<tool_response>\n')"};
  ToolTexts texts;
  if (!std::all_of(kForms.begin(), kForms.end(),
                   [&](std::string_view form) { return text.has(form); })) {
    return texts;
  }
  for (const std::string& literal : text.literals()) {
    if (literal.ends_with("\n<tools>")) texts.begin = literal;
    if (literal.starts_with("\n</tools>") && literal.ends_with(kTurnEnd)) texts.end = literal;
  }
  return texts;
}

}  // namespace

std::unique_ptr<const ChatFormat> recognize_chatml(const TemplateText& text, const ChatTemplate&) {
  if (!renders_chatml_turns(text.code()) || !text.has(R"('<|im_start|>assistant\n')")) {
    return nullptr;
  }
  // What makes a rendering differ from ChatML: other separators, a BOS, the date, contents that are
  // changed, an opened thought.
  // A default system message in a variable is not found, either.
  constexpr std::array<std::string_view, 7> kForeign = {
      "<|im_sep|>", "bos_token",           "strftime_now",    "|trim",
      ".strip()",   R"({{-'<think>\n'}})", "system_message='"};
  if (std::any_of(kForeign.begin(), kForeign.end(),
                  [&](std::string_view foreign) { return text.has(foreign); })) {
    return nullptr;
  }
  // Thoughts are stripped in more ways than one; this is Qwen's.
  const bool has_thoughts = text.has("ns.last_query_index");
  if (text.has("</think>") && !has_thoughts) return nullptr;
  std::optional<std::string> default_system = default_system_of(text);
  if (!default_system) return nullptr;
  return std::make_unique<const Chatml>(std::move(*default_system), tool_texts_of(text),
                                        has_thoughts);
}

}  // namespace incipit::text
