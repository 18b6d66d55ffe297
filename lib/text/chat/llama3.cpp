// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "text/chat/formats.h"
#include "text/chat/python_text.h"
#include "text/chat/rendering.h"
#include "text/role_name.h"

// Llama 3, and from 3.1 on a system turn with dates, and tools.

namespace incipit::text {
namespace {

constexpr std::string_view kRoleBegin = "<|start_header_id|>";
constexpr std::string_view kRoleEnd = "<|end_header_id|>\n\n";
constexpr std::string_view kTurnEnd = "<|eot_id|>";

void open_turn(std::string_view role, Rendering& out) {
  out.control(std::string(kRoleBegin) + std::string(role) + std::string(kRoleEnd));
}

void append_turn(std::string_view role, std::string_view text, Rendering& out) {
  open_turn(role, out);
  out.text(python_stripped(text)).control(kTurnEnd);
}

class Llama3 final : public ChatFormat {
 public:
  explicit Llama3(std::string bos) : bos_(std::move(bos)) {}

  std::string_view name() const noexcept override { return "Llama 3"; }

  std::vector<TextPiece> render(std::span<const Message> conversation,
                                const ChatOptions& options) const override {
    check_not_empty(conversation);
    refuse_tools(name(), conversation, options);
    Rendering out;
    out.control(bos_);
    for (const Message& message : conversation) {
      append_turn(role_name(message.role), message.text, out);
    }
    open_turn("assistant", out);
    return out.take();
  }

  std::vector<TextPiece> render_turn(const Message& message) const override {
    refuse_tools(name(), message);
    Rendering out;
    append_turn(role_name(message.role), message.text, out);
    return out.take();
  }

 private:
  std::string bos_;
};

/// What the template says to the model in its own words.
struct Llama31Texts {
  std::string environment, knowledge, today, default_date;
  std::string tools[4];  // in front of the tools, in order
};

class Llama31 final : public ChatFormat {
 public:
  Llama31(std::string bos, Llama31Texts texts) : bos_(std::move(bos)), texts_(std::move(texts)) {}

  std::string_view name() const noexcept override { return "Llama 3.1"; }

  std::vector<TextPiece> render(std::span<const Message> conversation,
                                const ChatOptions& options) const override {
    check_not_empty(conversation);
    Rendering out;
    out.control(bos_);
    std::size_t next = append_system(conversation, options, out);
    if (!options.tools.empty()) {
      if (next == conversation.size()) {
        base::throw_error(ErrorCode::kInvalidArgument,
                          "Llama 3.1 is told of tools in the first message after the system's; "
                          "there is none");
      }
      append_tools(conversation[next++], options, out);
    }
    for (; next < conversation.size(); ++next) append_message(conversation[next], out);
    open_turn("assistant", out);
    return out.take();
  }

  std::vector<TextPiece> render_turn(const Message& message) const override {
    Rendering out;
    append_message(message, out);
    return out.take();
  }

 private:
  /// The system turn, which the first message may be part of; returns how many messages it took.
  std::size_t append_system(std::span<const Message> conversation, const ChatOptions& options,
                            Rendering& out) const {
    const bool given = conversation.front().role == Role::kSystem;
    open_turn("system", out);
    if (!options.tools.empty()) out.control(texts_.environment);
    out.control(texts_.knowledge).control(texts_.today);
    out.text(options.date.empty() ? texts_.default_date : options.date).control("\n\n");
    if (given) out.text(python_stripped(conversation.front().text));
    out.control(kTurnEnd);
    return given ? 1 : 0;
  }

  void append_tools(const Message& first, const ChatOptions& options, Rendering& out) const {
    open_turn("user", out);
    for (const std::string& text : texts_.tools) out.control(text);
    for (const auto& tool : parse_tools(options)) out.text(indented_json(tool)).control("\n\n");
    out.text(python_stripped(first.text)).control(kTurnEnd);
  }

  static void append_message(const Message& message, Rendering& out) {
    if (message.role == Role::kTool) {
      open_turn("ipython", out);
      out.text(quoted_json(message.text)).control(kTurnEnd);
    } else if (message.tool_calls.empty()) {
      append_turn(role_name(message.role), message.text, out);
    } else {
      append_call(message.tool_calls, out);
    }
  }

  // A call takes the place of the message's text.
  static void append_call(const std::vector<ToolCall>& calls, Rendering& out) {
    if (calls.size() > 1) {
      base::throw_error(ErrorCode::kInvalidArgument, "Llama 3.1 calls one tool in a message, not " +
                                                         std::to_string(calls.size()) +
                                                         "; split the message");
    }
    open_turn("assistant", out);
    out.text("{\"name\": " + quoted_json(calls[0].name) +
             ", \"parameters\": " + std::string(arguments_of(calls[0])) + "}");
    out.control(kTurnEnd);
  }

  std::string bos_;
  Llama31Texts texts_;
};

/// The literal that is assigned to `date_string` where the template knows no date.
std::string default_date_of(const TemplateText& text) {
  constexpr std::string_view kAssigned = "date_string='";
  const std::string& code = text.code();
  const std::size_t at = code.find(kAssigned);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + kAssigned.size();
  return code.substr(begin, code.find('\'', begin) - begin);
}

}  // namespace

std::unique_ptr<const ChatFormat> recognize_llama3(const TemplateText& text,
                                                   const ChatTemplate& chat) {
  // Both of them write <|start_header_id|> role <|end_header_id|> text <|eot_id|>, trimmed.
  if (!text.has(R"('<|start_header_id|>'+message.role+'<|end_header_id|>\n\n'+message.content|trim)"
                R"(+'<|eot_id|>')") ||
      !text.has(R"('<|start_header_id|>assistant<|end_header_id|>\n\n')")) {
    return nullptr;
  }
  Llama31Texts texts;
  texts.knowledge = text.literal("Cutting Knowledge Date");
  if (texts.knowledge.empty() && !text.has("tools") && !text.has("strftime_now")) {
    return std::make_unique<const Llama3>(text.has("bos_token") ? chat.bos : std::string());
  }
  texts.environment = text.literal("Environment: ipython\n");
  texts.today = text.literal("Today Date: ");
  texts.default_date = default_date_of(text);
  texts.tools[0] = text.literal("Given the following functions");
  texts.tools[1] = text.literal("with its proper arguments");
  texts.tools[2] = text.literal("Respond in the format");
  texts.tools[3] = text.literal("Do not use variables");
  const bool is_whole = !texts.environment.empty() && !texts.today.empty() &&
                        !texts.default_date.empty() && !texts.tools[0].empty() &&
                        !texts.tools[3].empty() && text.has("tools_in_user_message=true");
  if (texts.knowledge.empty() || !is_whole) return nullptr;
  return std::make_unique<const Llama31>(text.has("bos_token") ? chat.bos : std::string(),
                                         std::move(texts));
}

}  // namespace incipit::text
