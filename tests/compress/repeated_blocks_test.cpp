// SPDX-License-Identifier: Apache-2.0
#include "compress/repeated_blocks.h"

#include <chrono>

#include "compress/mixed_text.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

std::string listing(int first, int lines) {
  std::string text;
  for (int i = first; i < first + lines; ++i) {
    text += "    line_of_code(" + std::to_string(i) + ");\n";
    if (i % 5 == 0) text += "\n";
  }
  return text;
}

TEST_CASE("finds lines that an earlier text holds") {
  RepeatedBlocks known;
  CHECK(known.find(listing(0, 30)).empty());
  known.add("Something else\n");
  known.add("a header line\n" + listing(0, 30));
  const std::string text = "Here it is again:\n" + listing(10, 12) + "and so on\n";
  const auto blocks = known.find(text);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].source == 1);
  CHECK(blocks[0].first_line == 14);  // behind the header, ten lines and two empty ones
  CHECK(blocks[0].lines == 15);
  CHECK(blocks[0].span.of(text) == listing(10, 12));
  CHECK(replace_blocks(text, blocks, [](const RepeatedBlock& block) {
          return std::to_string(block.lines) + " lines as above";
        }) == "Here it is again:\n15 lines as above\nand so on\n");
}

TEST_CASE("what is short or different stays") {
  RepeatedBlocks known;
  known.add(listing(0, 30));
  CHECK(known.find("").empty());
  CHECK(known.find(listing(0, 4)).empty());
  CHECK(known.find(listing(100, 30)).empty());
  std::string many;  // lines of less than 12 characters
  for (int i = 0; i < 100; ++i) many += "}\n";
  known.add(many);
  CHECK(known.find(many).empty());
}

TEST_CASE("texts that are too short for a block still count as texts") {
  RepeatedBlocks known;
  known.add("");
  known.add("too short a text\n");
  known.add(listing(0, 30));
  CHECK(known.size() == 3);
  const std::string text = listing(10, 12);
  REQUIRE(known.find(text).size() == 1);
  CHECK(known.find(text)[0].source == 2);
  const std::string line(RepeatedBlocks::kMinBytes, 'x');
  known.add(line);
  REQUIRE(known.find(line).size() == 1);
  CHECK(known.find(line)[0].source == 3);
  known.add(std::string(RepeatedBlocks::kMinBytes - 1, 'y'));
  CHECK(known.find(std::string(RepeatedBlocks::kMinBytes - 1, 'y')).empty());
}

TEST_CASE("white space at line ends and the form of characters do not count") {
  RepeatedBlocks known;
  std::string composed, decomposed;
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    composed += "caf\u00e9 number " + number + " is open\n";
    decomposed += "cafe\u0301 number " + number + " is open  \r\n";
  }
  known.add(composed);
  const auto blocks = known.find(decomposed);
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].span == text::Span{0, decomposed.size()});
}

TEST_CASE("takes the longest of several sources") {
  RepeatedBlocks known;
  known.add(listing(0, 10) + "something different here\n");
  known.add(listing(0, 20));
  const auto blocks = known.find(listing(0, 20));
  REQUIRE(blocks.size() == 1);
  CHECK(blocks[0].source == 1);
}

TEST_CASE("blocks are disjoint, in order, and stand in their sources") {
  std::mt19937 random(4);
  RepeatedBlocks known;
  std::vector<std::string> texts;
  std::size_t found = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::size_t parts = below(random, 6); parts > 0; --parts) {
      const int first = static_cast<int>(below(random, 40));
      text += below(random, 3) == 0 ? mixed_text(random, 5)
                                    : listing(first, 1 + static_cast<int>(below(random, 20)));
    }
    std::size_t end = 0;
    for (const RepeatedBlock& block : known.find(text)) {
      ++found;
      REQUIRE(block.span.begin >= end);
      REQUIRE(block.span.end <= text.size());
      REQUIRE(block.source < texts.size());
      end = block.span.end;
      const std::string last_line(block.span.of(text).substr(0, block.span.of(text).find('\n')));
      REQUIRE(texts[block.source].find(last_line) != std::string::npos);
    }
    known.add(text);
    texts.push_back(text);
  }
  CHECK(found > 100);
}

TEST_CASE("many equal lines and texts take linear time") {
  const auto begin = std::chrono::steady_clock::now();
  RepeatedBlocks known;
  std::string equal;
  for (int i = 0; i < 50000; ++i) equal += "the very same line\n";
  known.add(equal);
  CHECK(known.find(equal).size() == 1);
  for (int i = 0; i < 50000; ++i) known.add("a line of some message\n");
  CHECK(known.find("a line of some message\n").empty());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() < 20);
}

}  // namespace
}  // namespace incipit::compress
