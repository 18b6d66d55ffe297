// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "incipit/openai.h"
#include "text/role_name.h"

namespace incipit::inline v0 {
namespace {

using Json = nlohmann::ordered_json;

// A document takes up to about twenty times the memory of its text.
constexpr std::size_t kMaxBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxMembers = 1024;

[[noreturn]] void fail(const std::string& place, const std::string& why) {
  base::throw_error(ErrorCode::kInvalidArgument, place + " " + why);
}

std::string written(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A value of the document, null where it is missing, and where it stands there.
struct Place {
  const Json* value = nullptr;
  std::string path = {};

  bool is_null() const { return value == nullptr || value->is_null(); }
  Place element(std::size_t i) const {
    return {&(*value)[i], path + "[" + std::to_string(i) + "]"};
  }
  /// Of an object.
  Place member(const char* key) const {
    const auto found = value->find(key);
    return {found == value->end() ? nullptr : &*found, path.empty() ? key : path + "." + key};
  }
  void must_be_object() const {
    if (is_null() || !value->is_object()) fail(path, "must be an object");
  }
  void must_be_list() const {
    if (is_null() || !value->is_array()) fail(path, "must be a list");
  }
  std::string text() const {
    if (is_null()) return {};
    if (!value->is_string()) fail(path, "must be a text");
    return value->get<std::string>();
  }
  bool flag() const {
    if (is_null()) return false;
    if (!value->is_boolean()) fail(path, "must be true or false");
    return value->get<bool>();
  }
};

Role role_of(const Place& place) {
  const std::string name = place.text();
  if (name == "system" || name == "developer") return Role::kSystem;
  if (name == "user") return Role::kUser;
  if (name == "assistant") return Role::kAssistant;
  if (name == "tool") return Role::kTool;
  fail(place.path, "must be system, developer, user, assistant or tool");
}

/// A text, null, or a list of texts and parts with a text, which become lines.
std::string content_of(const Place& place) {
  if (place.is_null() || place.value->is_string()) return place.text();
  if (!place.value->is_array()) fail(place.path, "must be a text, a list of text parts or null");
  std::string content;
  for (std::size_t i = 0; i < place.value->size(); ++i) {
    const Place part = place.element(i);
    if (i > 0) content += '\n';
    if (part.value->is_string()) {
      content += part.text();
      continue;
    }
    part.must_be_object();
    const std::string type = part.member("type").text();
    const bool is_refusal = type == "refusal";
    if (!is_refusal && type != "text" && type != "input_text" && type != "output_text") {
      fail(part.member("type").path, "must be text: other kinds of content are not supported");
    }
    const Place text = part.member(is_refusal ? "refusal" : "text");
    if (text.is_null()) fail(text.path, "is missing");
    content += text.text();
  }
  return content;
}

ToolCall tool_call_of(const Place& place) {
  place.must_be_object();
  const Place type = place.member("type");
  if (!type.is_null() && type.text() != "function") fail(type.path, "must be function");
  const Place function = place.member("function");
  function.must_be_object();
  ToolCall call;
  call.id = place.member("id").text();
  call.name = function.member("name").text();
  if (call.name.empty()) fail(function.member("name").path, "is missing");
  const Place arguments = function.member("arguments");
  // Some programs write the object itself instead of its text.
  const bool is_object = !arguments.is_null() && arguments.value->is_object();
  call.arguments = is_object ? written(*arguments.value) : arguments.text();
  return call;
}

Message message_of(const Place& place) {
  place.must_be_object();
  Message message;
  message.role = role_of(place.member("role"));
  message.text = content_of(place.member("content"));
  const Place calls = place.member("tool_calls");
  if (!calls.is_null()) {
    calls.must_be_list();
    if (message.role != Role::kAssistant && !calls.value->empty()) {
      fail(calls.path, "may only stand in a message of the assistant");
    }
    for (std::size_t i = 0; i < calls.value->size(); ++i) {
      message.tool_calls.push_back(tool_call_of(calls.element(i)));
    }
  }
  const Place answered = place.member("tool_call_id");
  message.tool_call_id = answered.text();
  if (message.role != Role::kTool && !message.tool_call_id.empty()) {
    fail(answered.path, "may only stand in a message of a tool");
  }
  message.id = place.member("id").text();
  message.pinned = place.member("pinned").flag();
  message.no_compress = place.member("no_compress").flag();
  message.ephemeral = place.member("ephemeral").flag();
  message.constraint = place.member("constraint").flag();
  return message;
}

/// Throws for brackets that nest too deeply, and for objects of so many members that looking each
/// one up among the others, as the parser does, would take long.
void check_size(std::string_view text) {
  std::array<std::size_t, kMaxDepth + 1> commas = {};  // of the brackets that are open
  std::array<bool, kMaxDepth + 1> is_object = {};
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) {
        base::throw_error(ErrorCode::kInvalidArgument,
                          "the conversation's JSON is nested too deeply");
      }
      commas[depth] = 0;
      is_object[depth] = c == '{';
    } else if (c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (c == ',' && is_object[depth] && ++commas[depth] >= kMaxMembers) {
      base::throw_error(ErrorCode::kInvalidArgument,
                        "an object of the conversation's JSON has too many members");
    }
  }
}

// (nlohmann::json's parser with a callback, which could tell the depth, takes quadratic time.)
Json parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "a conversation may have at most 256 MiB of JSON");
  }
  check_size(text);
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    base::throw_error(ErrorCode::kInvalidArgument, "the conversation is no valid JSON from byte " +
                                                       std::to_string(error.byte) + " on");
  } catch (const Json::out_of_range&) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "the conversation's JSON has a number that is too large");
  }
}

Json json_of(const Message& message) {
  Json object = Json::object();
  object["role"] = text::role_name(message.role);
  if (message.text.empty() && !message.tool_calls.empty()) {
    object["content"] = nullptr;
  } else {
    object["content"] = message.text;
  }
  for (const ToolCall& call : message.tool_calls) {
    Json function = Json::object();
    function["name"] = call.name;
    function["arguments"] = call.arguments;
    Json entry = Json::object();
    entry["id"] = call.id;
    entry["type"] = "function";
    entry["function"] = std::move(function);
    object["tool_calls"].push_back(std::move(entry));
  }
  if (!message.tool_call_id.empty()) object["tool_call_id"] = message.tool_call_id;
  if (!message.id.empty()) object["id"] = message.id;
  if (message.pinned) object["pinned"] = true;
  if (message.no_compress) object["no_compress"] = true;
  if (message.ephemeral) object["ephemeral"] = true;
  if (message.constraint) object["constraint"] = true;
  return object;
}

}  // namespace

std::vector<Message> messages_from_openai(std::string_view json) {
  const Json document = parse(json);
  Place list = {&document, ""};
  if (document.is_object()) {
    list = list.member("messages");
  } else {
    list.path = "messages";
  }
  list.must_be_list();
  std::vector<Message> messages;
  messages.reserve(list.value->size());
  for (std::size_t i = 0; i < list.value->size(); ++i) {
    messages.push_back(message_of(list.element(i)));
  }
  return messages;
}

std::string messages_to_openai(std::span<const Message> messages) {
  std::string text = "[";
  for (const Message& message : messages) {
    if (text.size() > 1) text += ", ";
    text += written(json_of(message));
  }
  return text + "]";
}

}  // namespace incipit::inline v0
