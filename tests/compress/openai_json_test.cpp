// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "compress/mixed_text.h"
#include "incipit/error.h"
#include "incipit/openai.h"
#include "support/catch.h"
#include "text/utf8.h"

namespace incipit {
namespace {

bool same(const Message& a, const Message& b) {
  const auto same_calls = [&] {
    if (a.tool_calls.size() != b.tool_calls.size()) return false;
    for (std::size_t i = 0; i < a.tool_calls.size(); ++i) {
      const ToolCall &x = a.tool_calls[i], &y = b.tool_calls[i];
      if (x.id != y.id || x.name != y.name || x.arguments != y.arguments) return false;
    }
    return true;
  };
  return a.role == b.role && a.text == b.text && same_calls() && a.tool_call_id == b.tool_call_id &&
         a.id == b.id && a.pinned == b.pinned && a.no_compress == b.no_compress &&
         a.ephemeral == b.ephemeral && a.constraint == b.constraint;
}

/// What the Error says, or "" where there is none.
std::string refusal(std::string_view json) {
  try {
    static_cast<void>(messages_from_openai(json));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return error.what();
  }
  return {};
}

TEST_CASE("reads a list of messages") {
  const auto messages = messages_from_openai(R"([
    {"role": "system", "content": "Be brief.", "pinned": true},
    {"role": "user", "content": [{"type": "text", "text": "a"}, "b"], "id": "m1", "name": "Ann"},
    {"role": "assistant", "content": null, "tool_calls": [
      {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
      {"id": "c2", "function": {"name": "g", "arguments": {"y": [2, 3.50]}}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "ok", "ephemeral": true},
    {"role": "developer", "content": "Never swear.", "constraint": true, "no_compress": true},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}], "refusal": null}])");
  REQUIRE(messages.size() == 6);
  CHECK(messages[0].role == Role::kSystem);
  CHECK(messages[0].pinned);
  CHECK(messages[1].role == Role::kUser);
  CHECK(messages[1].text == "a\nb");
  CHECK(messages[1].id == "m1");
  CHECK(messages[2].text.empty());
  REQUIRE(messages[2].tool_calls.size() == 2);
  CHECK(messages[2].tool_calls[0].id == "c1");
  CHECK(messages[2].tool_calls[0].arguments == "{\"x\": 1}");
  CHECK(messages[2].tool_calls[1].name == "g");
  CHECK(messages[2].tool_calls[1].arguments == "{\"y\":[2,3.5]}");
  CHECK(messages[3].role == Role::kTool);
  CHECK(messages[3].tool_call_id == "c1");
  CHECK(messages[3].ephemeral);
  CHECK(messages[4].role == Role::kSystem);
  CHECK((messages[4].constraint && messages[4].no_compress));
  CHECK(messages[5].text == "No.");
}

TEST_CASE("reads a request, and empty ones") {
  CHECK(messages_from_openai(R"({"model": "x", "messages": [{"role": "user"}]})").size() == 1);
  CHECK(messages_from_openai("[]").empty());
  CHECK(messages_from_openai("{\"messages\": []}").empty());
  CHECK(messages_to_openai({}) == "[]");
}

TEST_CASE("names the place of what is wrong") {
  const auto says = [](std::string_view json, std::string_view part) {
    const std::string text = refusal(json);
    if (text.find(part) == std::string::npos) FAIL_CHECK(json << " says '" << text << "'");
  };
  says("", "JSON");
  says("[{\"role\": \"user\"}", "byte");
  says("[] x", "byte");
  says("1", "messages must be a list");
  says("{}", "messages must be a list");
  says("{\"messages\": {}}", "messages must be a list");
  says("[1]", "messages[0] must be an object");
  says("[{\"role\": \"user\"}, {}]", "messages[1].role must be");
  says("[{\"role\": 1}]", "messages[0].role must be a text");
  says("[{\"role\": \"robot\"}]", "messages[0].role must be");
  says("[{\"role\": \"user\", \"content\": 1}]", "messages[0].content");
  says("[{\"role\": \"user\", \"content\": {}}]", "messages[0].content");
  says("[{\"role\": \"user\", \"content\": [1]}]", "messages[0].content[0]");
  says("[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\"}]}]",
       "messages[0].content[0].type");
  says("[{\"role\": \"user\", \"content\": [{\"type\": \"text\"}]}]",
       "messages[0].content[0].text");
  says("[{\"role\": \"user\", \"pinned\": 1}]", "messages[0].pinned");
  says("[{\"role\": \"user\", \"id\": 1}]", "messages[0].id");
  says("[{\"role\": \"user\", \"tool_call_id\": \"c\"}]", "messages[0].tool_call_id");
  says("[{\"role\": \"user\", \"tool_calls\": [{}]}]", "messages[0].tool_calls");
  says("[{\"role\": \"assistant\", \"tool_calls\": {}}]", "messages[0].tool_calls must be a list");
  says("[{\"role\": \"assistant\", \"tool_calls\": [{}]}]", "messages[0].tool_calls[0].function");
  says("[{\"role\": \"assistant\", \"tool_calls\": [{\"function\": {}}]}]",
       "messages[0].tool_calls[0].function.name is missing");
  says(
      "[{\"role\": \"assistant\", \"tool_calls\": [{\"type\": \"x\", \"function\": {\"name\": "
      "\"f\"}}]}]",
      "messages[0].tool_calls[0].type");
}

TEST_CASE("refuses nesting without end") {
  CHECK(refusal(std::string(100000, '[')).find("deeply") != std::string::npos);
  std::string deep = "[{\"role\": \"user\", \"extra\": ";
  deep += std::string(200, '[') + std::string(200, ']') + "}]";
  CHECK(refusal(deep).find("deeply") != std::string::npos);
}

TEST_CASE("writes what it reads back") {
  std::mt19937 random(6);
  constexpr Role kRoles[] = {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool};
  const auto text = [&] {
    std::string whole;
    text::append_replaced(whole, compress::mixed_text(random, compress::below(random, 6)) + " ");
    return whole;
  };
  const auto flag = [&] { return compress::below(random, 2) == 0; };
  std::vector<Message> messages;
  for (int i = 0; i < 500; ++i) {
    Message message;
    message.role = kRoles[compress::below(random, 4)];
    if (flag()) message.text = text();
    if (message.role == Role::kAssistant) {
      for (std::size_t calls = compress::below(random, 3); calls > 0; --calls) {
        message.tool_calls.push_back({text(), text() + "f", flag() ? text() : ""});
      }
    }
    if (message.role == Role::kTool) message.tool_call_id = text();
    if (flag()) message.id = std::to_string(i);
    message.pinned = flag();
    message.no_compress = flag();
    message.ephemeral = flag();
    message.constraint = flag();
    messages.push_back(std::move(message));
  }
  const std::string json = messages_to_openai(messages);
  const auto read = messages_from_openai(json);
  REQUIRE(read.size() == messages.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!same(read[i], messages[i])) FAIL(json);
  }
  CHECK(messages_to_openai(read) == json);
}

TEST_CASE("writes JSON of OpenAI's form whatever the bytes") {
  Message message;
  message.role = Role::kAssistant;
  message.text = "\xFF";
  CHECK(messages_to_openai(std::span(&message, 1)) ==
        "[{\"role\":\"assistant\",\"content\":\"\uFFFD\"}]");
  message.text.clear();
  message.tool_calls = {{"c", "f", "{}"}};
  CHECK(messages_to_openai(std::span(&message, 1)) ==
        "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"c\",\"type\":"
        "\"function\","
        "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}]");
}

TEST_CASE("damaged JSON gives an Error or messages") {
  const std::string valid =
      "{\"messages\": [{\"role\": \"assistant\", \"content\": [{\"type\": \"text\", \"text\": "
      "\"a\"}], "
      "\"tool_calls\": [{\"id\": \"c\", \"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}], "
      "\"pinned\": true}, {\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": null}]}";
  constexpr std::string_view kBytes = "{}[]\",:\\0tnu \xFF";
  std::mt19937 random(8);
  std::size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = valid;
    for (std::size_t edits = 1 + compress::below(random, 3); edits > 0; --edits) {
      const std::size_t at = compress::below(random, damaged.size());
      switch (compress::below(random, 3)) {
        case 0:
          damaged.erase(at, 1 + compress::below(random, 8));
          break;
        case 1:
          damaged[at] = kBytes[compress::below(random, kBytes.size())];
          break;
        default:
          damaged.insert(at, 1, kBytes[compress::below(random, kBytes.size())]);
      }
    }
    try {
      static_cast<void>(messages_from_openai(damaged));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kInvalidArgument) FAIL(damaged);
      ++refused;
    }
  }
  CHECK(refused > 10000);
}

TEST_CASE("refuses numbers and objects that the parser has no place for") {
  CHECK(refusal("[1e999]") != "");
  const auto with_members = [](std::size_t count) {
    std::string json = "[{\"role\": \"user\", \"content\": \"a, b\", \"metadata\": [[1, 2], {";
    for (std::size_t i = 0; i < count; ++i) {
      json += i > 0 ? ",\"" : "\"";
      json += std::to_string(i) + "\": [" + std::to_string(i) + ", {}]";
    }
    return json + "}]}]";
  };
  CHECK(messages_from_openai(with_members(0)).size() == 1);
  CHECK(messages_from_openai(with_members(1024)).size() == 1);
  CHECK(refusal(with_members(1025)) != "");
}

TEST_CASE("reads 100,000 messages in linear time") {
  const auto begin = std::chrono::steady_clock::now();
  std::string json = "[";
  for (int i = 0; i < 100000; ++i) {
    json += std::string(i > 0 ? "," : "") + "{\"role\": \"user\", \"content\": \"hi\"}";
  }
  CHECK(messages_from_openai(json + "]").size() == 100000);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() < 10);
}

}  // namespace
}  // namespace incipit
