// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_MISTRAL_TOOLS_H_
#define INCIPIT_TEXT_CHAT_MISTRAL_TOOLS_H_

#include <string>

#include "text/chat/rendering.h"
#include "text/chat/template_text.h"

namespace incipit::text {

/// How a version of Mistral's format writes tools, calls and results. Version 3 writes JSON with
/// everything in it, version 11 sets names and ids apart by tokens of their own.
struct MistralTools {
  std::string offered = {};  // "[AVAILABLE_TOOLS] [": in front of the tools
  std::string calls = {};    // "[TOOL_CALLS] ["
  std::string result = {};   // "[TOOL_RESULTS] {\"content\": "
  bool by_tokens = false;

  bool is_present() const noexcept { return !calls.empty(); }

  /// All three throw Error{kInvalidArgument} for an id that is not 9 characters long, or a tool
  /// without a function.
  void append_offered(const ChatOptions& options, Rendering& out) const;
  void append_calls(const Message& message, Rendering& out) const;
  void append_result(const Message& message, Rendering& out) const;
};

/// What a template has of them; none where it writes them in another way.
MistralTools read_mistral_tools(const TemplateText& text);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_MISTRAL_TOOLS_H_
