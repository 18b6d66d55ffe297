// SPDX-License-Identifier: Apache-2.0
#include "compress/json_scan.h"

#include <nlohmann/json.hpp>
#include <string>

#include "compress/mixed_text.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

/// The value at the front of `text`, or nothing.
std::string scanned(std::string_view text) {
  JsonScanner scanner(text);
  if (!scanner.scan(0)) return {};
  return std::string(text.substr(0, scanner.nodes().front().end));
}

TEST_CASE("finds where an object or array ends") {
  CHECK(scanned("{} x") == "{}");
  CHECK(scanned("[ ]") == "[ ]");
  CHECK(scanned("{\"a\": \"}\\\"]\", \"b\": [1, -2.5e+3, true, null]}}") ==
        "{\"a\": \"}\\\"]\", \"b\": [1, -2.5e+3, true, null]}");
  CHECK(scanned("[\"\\u4e2d\\n\"]") == "[\"\\u4e2d\\n\"]");
}

TEST_CASE("rejects what does not parse") {
  for (const std::string_view text : {"",
                                      "{",
                                      "[",
                                      "[1,]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "[01]",
                                      "[1.]",
                                      "[1e]",
                                      "[+1]",
                                      "[\"\\x\"]",
                                      "[\"\\u00e\"]",
                                      "[\"a\nb\"]",
                                      "[\"\xFF\"]",
                                      "[tru]",
                                      "[1 2]",
                                      "{\"a\":1 \"b\":2}",
                                      "[}",
                                      "{]",
                                      "\"text\"",
                                      "1",
                                      "['a']",
                                      "[NaN]"}) {
    if (!scanned(text).empty()) FAIL_CHECK(text);
  }
}

TEST_CASE("lists values in order, with the number of their children") {
  const std::string_view text = "{\"a\": [1, {\"b\": 2}, 3], \"c\": {}}";
  JsonScanner scanner(text);
  REQUIRE(scanner.scan(0));
  const auto& nodes = scanner.nodes();
  REQUIRE(nodes.size() == 10);
  CHECK(nodes[0].children == 2);
  CHECK(nodes[0].next == 10);
  CHECK(nodes[2].kind == JsonNode::Kind::kArray);
  CHECK(nodes[2].children == 3);
  CHECK(nodes[2].next == 8);
  CHECK(text.substr(nodes[4].begin, nodes[4].end - nodes[4].begin) == "{\"b\": 2}");
  CHECK(nodes[9].children == 0);
}

TEST_CASE("agrees with a JSON parser on random texts") {
  constexpr std::string_view kAlphabet[] = {"{",     "}",    "[",       "]",     ",",    ":",
                                            "\"a\"", "1",    "-0.5",    " ",     "true", "\"",
                                            "\\",    "null", "\\u00e9", "\"b\":"};
  std::mt19937 random(1);
  std::size_t found = 0;
  for (int i = 0; i < 200000; ++i) {
    std::string text = i % 2 == 0 ? "{" : "[";
    for (std::size_t left = below(random, 9); left > 0; --left) {
      text += kAlphabet[below(random, std::size(kAlphabet))];
    }
    text += i % 2 == 0 ? "}" : "]";
    const bool is_whole = scanned(text).size() == text.size();
    if (is_whole != nlohmann::json::accept(text)) FAIL(text);
    if (is_whole) ++found;
  }
  CHECK(found > 1000);
}

TEST_CASE("limits the depth") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(scanned(nested(JsonScanner::kMaxDepth)).size() == 2 * JsonScanner::kMaxDepth);
  CHECK(scanned(nested(JsonScanner::kMaxDepth + 1)).empty());
}

TEST_CASE("attempts at many places take linear time") {
  const auto attempt_everywhere = [](const std::string& text) {
    JsonScanner scanner(text);
    std::size_t found = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      if (!scanner.scan(at)) continue;
      ++found;
      at = scanner.nodes().front().end - 1;
    }
    return found;
  };
  std::string open, strings, lists;
  for (int i = 0; i < 200000; ++i) {
    open += "[1,";
    strings += "[\"[\",";
    lists += i == 0 ? "[[]," : "[],";
  }
  CHECK(attempt_everywhere(open) == 0);
  CHECK(attempt_everywhere(strings) == 0);
  CHECK(attempt_everywhere(lists) == 200000);
}

}  // namespace
}  // namespace incipit::compress
