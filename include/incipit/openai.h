// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_OPENAI_H_
#define INCIPIT_OPENAI_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/export.h"
#include "incipit/message.h"

namespace incipit::inline v0 {

/// Reads a conversation in the JSON of OpenAI's chat completions: a list of messages, or an object
/// whose "messages" is one. A message has a "role" (system, developer, which is read as system,
/// user, assistant or tool), a "content" (a text, a list of text parts, which become lines, or
/// null), and where it applies "tool_calls" and "tool_call_id". incipit's own members are the text
/// "id" and the flags "pinned", "no_compress", "ephemeral" and "constraint". Other members are
/// ignored. Throws Error{kInvalidArgument}, which names the place, for anything else: images, say,
/// more than 256 MiB, objects of more than 1,024 members, or nesting beyond 64 levels. Thread-safe;
/// O(length).
INCIPIT_API std::vector<Message> messages_from_openai(std::string_view json);

/// The list that messages_from_openai() reads back to equal messages. It refuses what no such JSON
/// has: tool calls without a name or in a message that is not the assistant's, a `tool_call_id` in
/// one that is not a tool's. Bytes that are no UTF-8 become U+FFFD. Throws Error{kInvalidArgument}
/// for an unknown role. Thread-safe; O(length).
INCIPIT_API std::string messages_to_openai(std::span<const Message> messages);

}  // namespace incipit::inline v0

#endif  // INCIPIT_OPENAI_H_
