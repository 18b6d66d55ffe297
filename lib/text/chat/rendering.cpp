// SPDX-License-Identifier: Apache-2.0
#include "text/chat/rendering.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "text/chat/python_text.h"

namespace incipit::text {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxToolBytes = std::size_t{1} << 20;
constexpr int kMaxToolDepth = 32;
// Members of a tool's objects are found one by one.
constexpr std::size_t kMaxToolMembers = 4096;

[[noreturn]] void refuse(std::string_view format, const char* what) {
  base::throw_error(ErrorCode::kInvalidArgument,
                    "the model's chat format, " + std::string(format) + ", has no " + what +
                        "; write it into a message's text, or give EngineOptions::chat_renderer");
}

Json parse_tool(const std::string& text, std::size_t index) {
  const std::string which = "ChatOptions::tools[" + std::to_string(index) + "] ";
  std::size_t members = 0;
  const auto check_size = [&](int depth, Json::parse_event_t event, Json&) {
    if (event == Json::parse_event_t::key && ++members > kMaxToolMembers) {
      base::throw_error(ErrorCode::kInvalidArgument, which + "has too many members");
    }
    if (depth > kMaxToolDepth) {
      base::throw_error(ErrorCode::kInvalidArgument, which + "is nested too deeply");
    }
    return true;
  };
  Json tool = Json::parse(text, check_size, /*allow_exceptions=*/false);
  if (!tool.is_object()) {
    base::throw_error(ErrorCode::kInvalidArgument, which + "is no JSON object");
  }
  return tool;
}

}  // namespace

void check_not_empty(std::span<const Message> conversation) {
  if (conversation.empty()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "a conversation needs at least one message to be rendered");
  }
}

void refuse_tools(std::string_view format, const Message& message) {
  if (!message.tool_calls.empty()) refuse(format, "tool calls");
  if (message.role == Role::kTool) refuse(format, "results of tools");
}

void refuse_offered_tools(std::string_view format, const ChatOptions& options) {
  if (!options.tools.empty()) refuse(format, "tools");
}

void refuse_tools(std::string_view format, std::span<const Message> conversation,
                  const ChatOptions& options) {
  refuse_offered_tools(format, options);
  for (const Message& message : conversation) refuse_tools(format, message);
}

std::vector<Json> parse_tools(const ChatOptions& options) {
  std::size_t bytes = 0;
  std::vector<Json> tools;
  for (std::size_t i = 0; i < options.tools.size(); ++i) {
    bytes += std::min(options.tools[i].size(), kMaxToolBytes + 1);
    if (bytes > kMaxToolBytes) {
      base::throw_error(ErrorCode::kInvalidArgument,
                        "ChatOptions::tools are longer than 1 MiB together");
    }
    tools.push_back(parse_tool(options.tools[i], i));
  }
  return tools;
}

std::string_view arguments_of(const ToolCall& call) noexcept {
  return call.arguments.empty() ? std::string_view("{}") : std::string_view(call.arguments);
}

std::string quoted_json(std::string_view text) { return python_json(Json(text)); }

std::vector<Message> fold_systems(std::span<const Message> conversation) {
  std::vector<Message> messages;
  std::optional<std::string> front;  // of the next message of the user
  for (const Message& message : conversation) {
    if (message.role == Role::kSystem) {
      if (front) {
        front->append("\n\n").append(message.text);
      } else {
        front = message.text;
      }
      continue;
    }
    messages.push_back(message);
    if (message.role == Role::kUser && front) {
      messages.back().text = *front + "\n\n" + message.text;
      front.reset();
    }
  }
  if (front) messages.push_back({Role::kUser, std::move(*front)});
  return messages;
}

}  // namespace incipit::text
