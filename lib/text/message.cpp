// SPDX-License-Identifier: Apache-2.0
#include "incipit/message.h"

#include <nlohmann/json.hpp>

namespace incipit::inline v0 {

std::string shown_text(const Message& message) {
  using Json = nlohmann::json;
  std::string text = message.text;
  for (const ToolCall& call : message.tool_calls) {
    if (!text.empty()) text += '\n';
    const std::string name = Json(call.name).dump(-1, ' ', false, Json::error_handler_t::replace);
    text += "<tool_call>\n{\"name\": " + name +
            ", \"arguments\": " + (call.arguments.empty() ? std::string("{}") : call.arguments) +
            "}\n</tool_call>";
  }
  return text;
}

}  // namespace incipit::inline v0
