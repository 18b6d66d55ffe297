// SPDX-License-Identifier: Apache-2.0
#include "compress/fence.h"

#include <string>

#include "support/catch.h"

namespace incipit::compress {
namespace {

/// The block that begins with the first line, or nothing.
std::string block(const std::string& text) {
  FenceFinder finder(text);
  const auto end = finder.block_end(0);
  return end ? text.substr(0, *end) : "";
}

/// The block behind `front`, each of whose lines is looked at.
std::string block_behind(const std::string& front, const std::string& text) {
  const std::string all = front + text;
  FenceFinder finder(all);
  for (std::size_t at = 0; at < front.size(); at = front.find('\n', at) + 1) {
    REQUIRE(!finder.block_end(at));
  }
  const auto end = finder.block_end(front.size());
  return end ? all.substr(front.size(), *end - front.size()) : "";
}

TEST_CASE("a fence has three marks or more, and its end as many") {
  CHECK(block("```\na\n```\nb\n") == "```\na\n```\n");
  CHECK(block("~~~\na\n~~~") == "~~~\na\n~~~");
  CHECK(block("````\n```\n`````\nb") == "````\n```\n`````\n");
  CHECK(block("``\na\n``\n").empty());
  CHECK(block("").empty());
  CHECK(block("\n").empty());
  CHECK(block("```") == "```");
}

TEST_CASE("the other mark and an end with words do not end it") {
  CHECK(block("```\n~~~\n``` x\n```\nb") == "```\n~~~\n``` x\n```\n");
  CHECK(block("~~~ a`b\n```\n~~~\n") == "~~~ a`b\n```\n~~~\n");
  CHECK(block("``` a`b\n```\n").empty());
}

TEST_CASE("up to three spaces stand in front") {
  CHECK(block("   ```\na\n   ```\nb") == "   ```\na\n   ```\n");
  CHECK(block("    ```\na\n").empty());
  CHECK(block("\t```\na\n").empty());
  CHECK(block("```\na\n    ```\n```\nb") == "```\na\n    ```\n```\n");
}

TEST_CASE("a block ends with its quote") {
  CHECK(block("> ```\n> a\n> ```\nb") == "> ```\n> a\n> ```\n");
  CHECK(block("> ```\n> a\nb\n") == "> ```\n> a\n");
  CHECK(block("> > ```\n> > a\n> b\n") == "> > ```\n> > a\n");
}

TEST_CASE("a block ends with its list item") {
  CHECK(block("- ```\n  a\n  ```\nb") == "- ```\n  a\n  ```\n");
  CHECK(block("- ```\n  a\n\n  b\nc\n") == "- ```\n  a\n\n  b\n");
  CHECK(block("12. ```\n    a\n    ```\n") == "12. ```\n    a\n    ```\n");
  CHECK(block_behind("1. one\n", "   ```\n   a\n   ```\n") == "   ```\n   a\n   ```\n");
  CHECK(block_behind("1. one\n   - two\n", "     ```\n     a\n     ```\n") ==
        "     ```\n     a\n     ```\n");
  // Behind the list it is an indented block.
  CHECK(block_behind("1. one\n\nBehind it.\n", "    ```\n    a\n").empty());
}

TEST_CASE("a line of many list marks takes no longer than another one") {
  std::string marks;
  for (int i = 0; i < 100'000; ++i) marks += "- ";
  const std::string text = marks + "\n```\na\n```\nb";
  FenceFinder finder(text);
  CHECK(!finder.block_end(0));
  CHECK(finder.block_end(marks.size() + 1) == text.size() - 1);
}

}  // namespace
}  // namespace incipit::compress
