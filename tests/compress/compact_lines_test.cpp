// SPDX-License-Identifier: Apache-2.0
#include "compress/compact_lines.h"

#include <algorithm>
#include <string>

#include "support/catch.h"

namespace incipit::compress {
namespace {

constexpr std::string_view kHandle = "0123456789abcdef";

std::string log_of(std::size_t lines, std::string_view words = "the part has been copied") {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    text += "12:00:" + std::to_string(10 + i) + " INFO " + std::string(words) + "\n";
  }
  return text;
}

std::string compacted_log(std::string_view text, std::size_t most) {
  Markers markers(kHandle);
  return compact_log(text, most, markers);
}

std::string compacted_table(std::string_view text, std::size_t most) {
  Markers markers(kHandle);
  return compact_table(text, most, markers);
}

std::string table_of(std::size_t rows) {
  std::string text = "| name     | value |\n|----------|-------|\n";
  for (std::size_t i = 0; i < rows; ++i) {
    text += "| a long name of row " + std::to_string(i) + " | " + std::to_string(i * i) + " |\n";
  }
  return text;
}

TEST_CASE("a log of as many lines as may stay stays") {
  CHECK(compacted_log("", 8).empty());
  CHECK(compacted_log(log_of(1), 1) == log_of(1));
  CHECK(compacted_log(log_of(8), 8) == log_of(8));
  CHECK(compacted_log(log_of(50), 0) == log_of(50));
}

TEST_CASE("of lines that are alike the first two and the last stay") {
  const std::string shorter = compacted_log(log_of(30), 8);
  CHECK(shorter == log_of(2) + "[... 27 similar lines left out; restore 0123456789abcdef ...]\n" +
                       "12:00:39 INFO the part has been copied\n");
  // The last line may have no line break.
  std::string open = log_of(30);
  open.pop_back();
  CHECK(compacted_log(open, 8) + "\n" == shorter);
}

TEST_CASE("lines that say something else stay, however few characters differ") {
  std::string text = log_of(10);
  text += "12:00:20 INFO the part has been removed\n";
  text += log_of(10);
  const std::string shorter = compacted_log(text, 8);
  CHECK(shorter.find("the part has been removed\n") != std::string::npos);
  CHECK(shorter.size() < text.size());
}

TEST_CASE("more lines of errors stay") {
  const std::string shorter = compacted_log(log_of(30, "ERROR in the copied part"), 8);
  CHECK(std::count(shorter.begin(), shorter.end(), '\n') == 8);
  for (const std::string_view line : {"an error", "Exception: x", "Traceback (most", "2 failed"}) {
    CHECK(tells_of_error(line));
  }
  CHECK_FALSE(tells_of_error(""));
  CHECK_FALSE(tells_of_error("all is well"));
}

TEST_CASE("tables lose padding, and rows in their middle") {
  CHECK(compacted_table("| a    | b |\n|------|---|\n| 1    | 2 |", 24) ==
        "| a | b |\n|---|---|\n| 1 | 2 |");
  CHECK(compacted_table("| `a    b` |\n|---|\n", 24) == "| `a    b` |\n|---|\n");
  const std::string shorter = compacted_table(table_of(17), 6);
  CHECK(shorter.find("row 3 |") != std::string::npos);
  CHECK(shorter.find("row 4 |") == std::string::npos);
  CHECK(shorter.find("| [... 11 rows left out; restore 0123456789abcdef ...] |\n") !=
        std::string::npos);
  CHECK(shorter.find("row 15 |") != std::string::npos);
  CHECK(compacted_table(table_of(6), 6).find("[...") == std::string::npos);
  CHECK(compacted_table(table_of(99), 0).find("[...") == std::string::npos);
}

TEST_CASE("empty lines behind a table stay") {
  CHECK(compacted_table("a  | b\n---|---\n1 | 2\n\n \n", 24) == "a | b\n---|---\n1 | 2\n\n \n");
}

}  // namespace
}  // namespace incipit::compress
