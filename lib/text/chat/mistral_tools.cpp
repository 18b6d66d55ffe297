// SPDX-License-Identifier: Apache-2.0
#include "text/chat/mistral_tools.h"

#include "base/check.h"
#include "text/chat/python_text.h"

namespace incipit::text {
namespace {

using Json = nlohmann::ordered_json;

const std::string& checked_id(const std::string& id) {
  constexpr std::size_t kIdBytes = 9;
  if (id.size() != kIdBytes) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "Mistral's chat format wants ids of tool calls to be 9 letters and digits, "
                      "not '" +
                          id + "'");
  }
  return id;
}

// {"type": "function", "function": {...}}, its texts not escaped: as the template writes it.
std::string function_json(const Json& tool) {
  const auto function = tool.find("function");
  if (function == tool.end() || !function->is_object()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "one of ChatOptions::tools has no object 'function', which Mistral's chat "
                      "format wants");
  }
  std::string members;
  for (const auto& member : function->items()) {
    if (member.key() == "return") continue;
    if (!members.empty()) members += ", ";
    members += '"' + member.key() + "\": ";
    const Json& value = member.value();
    members += value.is_string() ? '"' + value.get<std::string>() + '"' : python_json(value);
  }
  return R"({"type": "function", "function": {)" + members + "}}";
}

}  // namespace

void MistralTools::append_offered(const ChatOptions& options, Rendering& out) const {
  out.control(offered);
  const std::vector<Json> tools = parse_tools(options);
  if (by_tokens) {
    out.text(python_json(Json(tools)));
  } else {
    for (std::size_t i = 0; i < tools.size(); ++i) {
      out.text((i > 0 ? ", " : "") + function_json(tools[i]));
    }
    out.control("]");
  }
  out.control("[/AVAILABLE_TOOLS]");
}

void MistralTools::append_calls(const Message& message, Rendering& out) const {
  if (!by_tokens) out.control(calls);
  bool is_first = true;
  for (const ToolCall& call : message.tool_calls) {
    const std::string arguments(arguments_of(call));
    const std::string& id = checked_id(call.id);
    if (by_tokens) {
      out.control(calls).text(call.name).control("[CALL_ID]").text(id);
      out.control("[ARGS]").text(arguments);
    } else {
      out.text((is_first ? "{\"name\": " : ", {\"name\": ") + quoted_json(call.name) +
               ", \"arguments\": " + arguments + ", \"id\": " + quoted_json(id) + "}");
    }
    is_first = false;
  }
  if (!by_tokens) out.control("]");
}

void MistralTools::append_result(const Message& message, Rendering& out) const {
  const std::string& id = checked_id(message.tool_call_id);
  out.control(result);
  if (by_tokens) {
    out.text(id).control("[TOOL_CONTENT]").text(message.text);
  } else {
    out.text(message.text + ", \"call_id\": " + quoted_json(id) + "}");
  }
  out.control("[/TOOL_RESULTS]");
}

MistralTools read_mistral_tools(const TemplateText& text) {
  MistralTools tools;
  tools.offered = text.literal("[AVAILABLE_TOOLS]");
  tools.calls = text.literal("[TOOL_CALLS]");
  tools.result = text.literal("[TOOL_RESULTS]");
  tools.by_tokens = !text.literal("[CALL_ID]").empty() && !text.literal("[TOOL_CONTENT]").empty();
  const bool as_tokens = tools.by_tokens && tools.calls == "[TOOL_CALLS]" &&
                         tools.offered == "[AVAILABLE_TOOLS]" && tools.result == "[TOOL_RESULTS]";
  const bool as_json = !tools.by_tokens && tools.calls.ends_with('[') &&
                       tools.offered.ends_with('[') && tools.result.ends_with("{\"content\": ");
  return as_tokens || as_json ? tools : MistralTools();
}

}  // namespace incipit::text
