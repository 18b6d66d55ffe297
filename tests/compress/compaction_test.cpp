// SPDX-License-Identifier: Apache-2.0
#include "compress/compaction.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "compress/guard.h"
#include "compress/mixed_text.h"
#include "compress/pieces.h"
#include "support/catch.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

using nlohmann::json;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST_CASE("texts without structure stay as they are") {
  for (const std::string_view text :
       {"", " ", "A sentence.", "[]", "{}", "```\n{ \"a\":  1 }\n```\n", "一句话。"}) {
    const Compacted result = compact(text);
    CHECK(result.text == text);
    CHECK(result.methods.empty());
    CHECK(!result.lossy);
    CHECK(result.handle == handle_of(text));
  }
}

TEST_CASE("handles name contents") {
  CHECK(handle_of("a").size() == 16);
  CHECK(handle_of("a") == handle_of("a"));
  CHECK(handle_of("a") != handle_of("b"));
}

TEST_CASE("JSON loses white space and needless escapes, and nothing else") {
  const std::string text =
      "{\n  \"name\": \"caf\\u00e9 \\u4e2d\\ud83d\\ude00 \\\"x\\\" \\/\",\n"
      "  \"n\": [1.50, 1e5, -0, 12345678901234567890123],\n  \"t\": true\n}\n";
  const Compacted result = compact(text);
  CHECK(result.text ==
        "{\"name\":\"café 中😀 \\\"x\\\" "
        "/\",\"n\":[1.50,1e5,-0,12345678901234567890123],\"t\":true}\n");
  CHECK(json::parse(result.text) == json::parse(text));
  CHECK(!result.lossy);
  CHECK(result.methods == std::vector<std::string_view>{"json"});
}

TEST_CASE("escapes that nobody would see stay escapes") {
  const std::string text = "{ \"a\": \"\\u200d\\u202e\\ud800\\u0000\\u001f\\ufeff\\u3000\" }";
  CHECK(compact(text).text == "{\"a\":\"\\u200d\\u202e\\ud800\\u0000\\u001f\\ufeff\\u3000\"}");
}

TEST_CASE("long JSON arrays keep their ends, around a marker with the handle") {
  json list = json::array();
  for (int i = 0; i < 100; ++i)
    list.push_back({{"id", i}, {"name", "item number " + std::to_string(i)}});
  const std::string text = json({{"items", list}, {"total", 100}}).dump(2);
  const Compacted result = compact(text);
  CHECK(result.lossy);
  const json shorter = json::parse(result.text);
  REQUIRE(shorter["items"].size() == 21);
  CHECK(shorter["items"][0] == list[0]);
  CHECK(shorter["items"][13] == list[13]);
  CHECK(shorter["items"][20] == list[99]);
  const std::string marker = shorter["items"][14];
  CHECK(contains(marker, "80 items"));
  CHECK(contains(marker, result.handle));
  CHECK(shorter["total"] == 100);
  CHECK(result.text.size() < text.size() / 3);
}

TEST_CASE("long JSON strings keep their ends, whole graphemes and escapes") {
  for (const std::string_view part :
       {"word ", "中文字", "👩‍👩‍👧‍👦", "\\n", "\\\\", "\\\"", "e\u0301"}) {
    std::string content;
    while (content.size() < 5000) content += part;
    const std::string text = "{\"a\": \"" + content + "\"}";
    const Compacted result = compact(text);
    const json value = json::parse(result.text);  // throws for a cut escape or character
    const std::string shorter = value["a"];
    const std::string longer = json::parse(text)["a"];
    CHECK(shorter.size() < 1200);
    const std::size_t front = shorter.find(" [...");
    REQUIRE(front != std::string::npos);
    CHECK(shorter.substr(0, front) == longer.substr(0, front));
    std::string unit = json::parse(std::string("\"") + std::string(part) + "\"");
    if (unit.back() == ' ') unit.pop_back();
    CHECK(contains(unit + " " + unit,
                   shorter.substr(front - std::min(front, unit.size()), unit.size())));
  }
}

TEST_CASE("JSON as a whole parses afterwards, however long it is") {
  json object;
  for (int i = 0; i < 100; ++i) object["key" + std::to_string(i)] = json::array();
  for (auto& value : object) {
    for (int i = 0; i < 200; ++i) value.push_back(std::string(50, 'x') + std::to_string(i));
  }
  const std::string text = object.dump();
  const Compacted result = compact(text);
  CHECK(json::parse(result.text).size() == 100);
  CHECK(result.text.size() < text.size() / 10);
}

TEST_CASE("logs show lines of one template a few times, and errors") {
  std::string log;
  for (int i = 0; i < 100; ++i) {
    log += "2024-01-01 10:00:" + std::to_string(10 + i % 50) + " INFO request " +
           std::to_string(i) + " took " + std::to_string(i * 7) + " ms\n";
    if (i == 50) log += "2024-01-01 10:00:60 ERROR disk sda1 failed with code 0x7f\n";
  }
  const Compacted result = compact(log);
  CHECK(result.methods == std::vector<std::string_view>{"log"});
  CHECK(contains(result.text, "request 0 "));
  CHECK(contains(result.text, "request 1 "));
  CHECK(contains(result.text, "request 99 took 693 ms"));
  CHECK(contains(result.text, "ERROR disk sda1 failed with code 0x7f\n"));
  CHECK(contains(result.text, "[... 49 similar lines left out; restore " + result.handle));
  CHECK(result.text.size() < 500);
}

TEST_CASE("a log of different lines stays") {
  std::string log;
  for (char c = 'a'; c <= 'z'; ++c) {
    log += "2024-01-01 10:00:00 INFO " + std::string(1, c) + " begins\n";
  }
  CHECK(compact(log).text == log);
}

TEST_CASE("tables lose padding and middle rows") {
  std::string table = "| id    | name        |\n|-------|-------------|\n";
  for (int i = 0; i < 100; ++i) {
    table += "| " + std::to_string(1000 + i) + "  | name     " + std::to_string(i) + "   |\n";
  }
  const Compacted result = compact(table + "\nDone.");
  CHECK(contains(result.text, "| id | name |\n|---|---|\n| 1000 | name 0 |\n"));
  CHECK(contains(result.text, "| 1099 | name 99 |\n\nDone."));
  CHECK(contains(result.text, "76 rows left out"));
  CHECK(std::count(result.text.begin(), result.text.end(), '\n') == 28);
}

TEST_CASE("long texts keep their front, their end, and lines with errors") {
  std::string text;
  for (int i = 0; i < 2000; ++i)
    text += "Output line with some content, part " + std::to_string(i) + "\n";
  text.insert(text.find("part 1000\n"), "AssertionError: it broke at ");
  const Compacted result = compact(text);
  CHECK(result.methods == std::vector<std::string_view>{"head and tail"});
  CHECK(result.text.size() < 8500);
  CHECK(result.text.substr(0, 5000) == text.substr(0, 5000));
  CHECK(contains(result.text, "part 1999\n"));
  CHECK(contains(result.text, "AssertionError: it broke at part 1000\n"));
  CHECK(contains(result.text, "bytes left out; restore " + result.handle + " ...]\n"));
}

TEST_CASE("text without any break is cut between graphemes") {
  for (const std::string_view part : {"x", "中", "👨‍👩‍👧", "\xFF"}) {
    std::string text;
    while (text.size() < 50000) text += part;
    const Compacted result = compact(text);
    CHECK(result.text.size() < 3000);
    if (part != "\xFF") CHECK(text::valid_front(result.text) == result.text.size());
    const std::size_t front = result.text.find(" [...");
    CHECK(front % part.size() == 0);
  }
}

TEST_CASE("code blocks are never cut") {
  std::string code = "```cpp\n";
  for (int i = 0; i < 1000; ++i) code += "int variable_" + std::to_string(i) + " = 0;\n";
  code += "```\n";
  CHECK(compact(code).text == code);
  // Left out as a whole, it leaves no half of a fence.
  std::string prose;
  for (int i = 0; i < 300; ++i) prose += "A sentence of prose that goes on. ";
  const Compacted result = compact(prose + "\n" + code + prose);
  CHECK(!contains(result.text, "```"));
  CHECK(result.text.size() < 8500);
}

TEST_CASE("nothing is invented: what is left of a random text stands in it") {
  std::mt19937 random(21);
  CompactionOptions options;
  options.array_items = 2;
  options.string_bytes = 8;
  options.log_lines = 2;
  options.table_rows = 2;
  options.total_bytes = 300;
  std::size_t shorter = 0;
  for (int i = 0; i < 10000; ++i) {
    const std::string text = mixed_text(random, below(random, 60));
    const Compacted result = compact(text, options);
    if (result.text.size() > text.size()) FAIL(text);
    if (result.methods.empty() != (result.text == text)) FAIL(text);
    if (text::valid_front(text) == text.size() &&
        text::valid_front(result.text) != result.text.size()) {
      FAIL(text);
    }
    if (json::accept(text) && !json::accept(result.text)) FAIL(text);
    if (result.lossy != contains(result.text, result.handle)) FAIL(text);
    for_each_critical(result.text, [&](CriticalKind kind, std::string_view token, std::size_t) {
      // But for the numbers and words of markers.
      const bool is_own = contains(result.text, "left out");
      if (!is_own && kind == CriticalKind::kIdentifier && !contains(text, token)) FAIL(text);
    });
    if (result.text.size() < text.size()) ++shorter;
  }
  CHECK(shorter > 1000);
}

TEST_CASE("limits of 0 keep everything") {
  json list = json::array();
  for (int i = 0; i < 5000; ++i) list.push_back(i);
  const std::string text = json({{"a", list}, {"b", std::string(5000, 'x')}}).dump();
  CHECK(compact(text, {0, 0, 0, 0, 0}).text == text);
}

}  // namespace
}  // namespace incipit::compress
