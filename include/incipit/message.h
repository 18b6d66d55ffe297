// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MESSAGE_H_
#define INCIPIT_MESSAGE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/export.h"

namespace incipit::inline v0 {

/// Who speaks. kTool: what a tool that the assistant called has answered.
enum class Role { kSystem, kUser, kAssistant, kTool };

/// A tool that the assistant wants to be called.
struct ToolCall {
  std::string id = {};         ///< Message::tool_call_id of its result.
  std::string name = {};       ///< Of the tool.
  std::string arguments = {};  ///< JSON text, as the model wrote it.
};

/// One message of a conversation. Whatever the text contains, it never yields special tokens.
struct Message {
  Role role = Role::kUser;                ///< Who says it.
  std::string text = {};                  ///< UTF-8; other bytes are kept as they are.
  std::vector<ToolCall> tool_calls = {};  ///< Of Role::kAssistant.
  std::string tool_call_id = {};          ///< Of Role::kTool: the call that it answers.
  std::string id = {};                    ///< The host's name for it, which reports use.
  bool pinned = false;                    ///< For a Compressor: neither changed nor dropped.
  bool no_compress = false;               ///< Kept as it is or dropped, never changed.
  bool ephemeral = false;                 ///< The first to be dropped, and never summarised.
  bool constraint = false;                ///< An order that binds from here on: kept word for word.
};

/// The message as its text and, one per line, its tool calls: what a model is shown of it.
INCIPIT_API std::string shown_text(const Message& message);

/// Counts tokens as the model that will read them: Engine::token_counter(), or
/// rough_token_counter(). What a prompt takes is the sum over its messages, and `prompt`.
struct TokenCounter {
  std::function<std::size_t(std::string_view text)> text = {};  ///< Of a text by itself.
  /// Of a message, with all that the chat format puts around it.
  std::function<std::size_t(const Message& message)> message = {};
  std::size_t prompt = 0;  ///< Of what stands around the messages.
};

/// What a Compressor asks for: a summary that takes the place of a part of the conversation.
struct SummaryRequest {
  std::span<const Message> prompt = {};   ///< As it was sent last, the segment in it.
  std::span<const Message> segment = {};  ///< What is to be summarised.
  std::size_t max_tokens = 0;             ///< Of the summary.
};
/// Gives the text of a summary. May throw: the Compressor then makes one itself.
using Summarizer = std::function<std::string(const SummaryRequest& request)>;

}  // namespace incipit::inline v0

#endif  // INCIPIT_MESSAGE_H_
