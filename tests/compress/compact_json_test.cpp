// SPDX-License-Identifier: Apache-2.0
#include "compress/compact_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "support/catch.h"

namespace incipit::compress {
namespace {

using nlohmann::json;

std::string compacted(const std::string& text, const CompactionOptions& options = {}) {
  JsonScanner scanner(text);
  REQUIRE(scanner.scan(0));
  Markers markers("0123456789abcdef");
  return compact_json(text, scanner, options, markers);
}

/// A list of `count` texts of 30 bytes.
std::string list_of(std::size_t count) {
  json list = json::array();
  for (std::size_t i = 0; i < count; ++i) list.push_back(std::string(27, 'a') + std::to_string(i));
  return list.dump(2);
}

TEST_CASE("empty and single values keep their form") {
  CHECK(compacted("{ }") == "{}");
  CHECK(compacted("[ ]") == "[]");
  CHECK(compacted("[ 1 ]") == "[1]");
  CHECK(compacted("{ \"\" : \"\" }") == "{\"\":\"\"}");
  CHECK(compacted("[ [ ], { }, [ { } ] ]") == "[[],{},[{}]]");
  CHECK(compacted("{ \"a\": 1, \"a\": 2 }") == "{\"a\":1,\"a\":2}");
}

TEST_CASE("a list is long from one item more than its limit on") {
  CompactionOptions options;
  options.array_items = 15;
  CHECK(json::parse(compacted(list_of(15), options)).size() == 15);
  // Two items are shorter than a marker, three are not.
  CHECK(json::parse(compacted(list_of(16), options)) == json::parse(list_of(16)));
  const json shorter = json::parse(compacted(list_of(18), options));
  REQUIRE(shorter.size() == 16);
  CHECK(shorter[9] == json::parse(list_of(18))[9]);
  CHECK(shorter[10] == "[... 3 items left out; restore 0123456789abcdef ...]");
  CHECK(shorter[11] == json::parse(list_of(18))[13]);
  CHECK(shorter[15] == json::parse(list_of(18))[17]);
}

TEST_CASE("a limit of one item keeps the first one") {
  CompactionOptions options;
  options.array_items = 1;
  const json shorter = json::parse(compacted(list_of(9), options));
  REQUIRE(shorter.size() == 2);
  CHECK(shorter[0] == json::parse(list_of(9))[0]);
  options.array_items = 0;
  CHECK(json::parse(compacted(list_of(99), options)).size() == 99);
}

TEST_CASE("long strings stay JSON, wherever they are cut") {
  CompactionOptions options;
  for (std::size_t bytes = 1; bytes < 40; ++bytes) {
    options.string_bytes = bytes;
    std::string content;
    for (int i = 0; i < 60; ++i) content += i % 3 == 0 ? "\\" : i % 3 == 1 ? "\"" : "\n";
    const std::string text = json::array({content}).dump();
    const json shorter = json::parse(compacted(text, options));
    REQUIRE(shorter.size() == 1);
    CHECK(shorter[0].get<std::string>().find("[... ") != std::string::npos);
  }
}

TEST_CASE("names are never cut") {
  CompactionOptions options;
  options.string_bytes = 4;
  const std::string text = "{\"" + std::string(500, 'n') + "\":1}";
  CHECK(compacted(text, options) == text);
}

TEST_CASE("surrogates are joined in pairs alone") {
  CHECK(compacted("[\"\\ud83d\\ude00\"]") == "[\"😀\"]");
  for (const std::string text : {"[\"\\ud83d\"]", "[\"\\ud83dx\"]", "[\"\\ude00\\ud83d\"]",
                                 "[\"\\ud83d\\ud83d\"]", "[\"\\ud83d\\n\"]"}) {
    CHECK(compacted(text) == text);
  }
  CHECK(compacted("[\"\\ud83d\\u0041\"]") == "[\"\\ud83d\\u0041\"]");
  CHECK(compacted("[\"\\\\u00e9\"]") == "[\"\\\\u00e9\"]");  // a backslash, then letters
}

}  // namespace
}  // namespace incipit::compress
