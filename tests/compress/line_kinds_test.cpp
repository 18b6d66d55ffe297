// SPDX-License-Identifier: Apache-2.0
#include "compress/line_kinds.h"

#include <string>

#include "support/catch.h"

namespace incipit::compress {
namespace {

TEST_CASE("lines of logs begin with a time or a level") {
  for (const std::string_view line :
       {"2024-05-01 10:00", "2024-05-01T10:00:00Z x", "[2024/05/01 10:00:00] x",
        "(2024-05-01 10:00)", "01/May/2024:10:00:00 GET", "May  1 10:00:00 host x",
        "May 11 10:00:00 host x", "10:00:00 x", "I0501 10:00:00.0 x", "  10:00:00\n", "ERROR: x",
        "WARN\tx", "[INFO] x", "INFO[0000] x", "DEBUG x"}) {
    if (!is_log_line(line)) FAIL_CHECK(line);
  }
  for (const std::string_view line :
       {"", " ", "\n", "[", "(", "2024-05-01", "2024-05-01 1", "10:00", "10:00:0", "ERROR",
        "ERRORS: x", "[INFO", "[INFO x", "Error: x", "INFORMATION x", "a 10:00:00",
        "２０２４-05-01 10:00"}) {
    if (is_log_line(line)) FAIL_CHECK(line);
  }
}

TEST_CASE("a Markdown table has a delimiter in its second line") {
  const auto table = [](const std::string& text) { return text.substr(0, table_end(text, 0)); };
  CHECK(table("a | b\n--|--\n1 | 2\nend") == "a | b\n--|--\n1 | 2\n");
  CHECK(table("a | b\n--|--") == "a | b\n--|--");
  CHECK(table("| a |\n|:-:|\n\n| 1 |\n") == "| a |\n|:-:|\n");
  CHECK(table("a\n--|--\n1 | 2\n").empty());
  CHECK(table("a | b\n1 | 2\n").empty());
  CHECK(table("").empty());
  CHECK(table("|").empty());
  CHECK(table("a | b").empty());
  CHECK(table("a | b\n").empty());
}

TEST_CASE("a table with frames has two lines of them at least") {
  const auto table = [](const std::string& text) { return text.substr(0, table_end(text, 0)); };
  CHECK(table("+---+\n| a |\n+---+\nend") == "+---+\n| a |\n+---+\n");
  CHECK(table("+===+\r\n| a |\r\nend") == "+===+\r\n| a |\r\n");
  CHECK(table("+---+\nend\n").empty());
  CHECK(table("+1 | a\n+2 | b\n").empty());
}

TEST_CASE("tables are found in the middle of a text") {
  const std::string text = "x\n| a |\n|---|\n| 1 |\ny";
  CHECK(table_end(text, 2) == text.size() - 1);
  CHECK(table_end(text, text.size() - 1) == text.size() - 1);
}

TEST_CASE("delimiters of tables have a rule and a bar") {
  for (const std::string_view line : {"|-|", "-|-", "|:--|--:|", " | - | \n"}) {
    CHECK(is_table_delimiter(line));
  }
  for (const std::string_view line : {"", "|", "---", "|a-|", "::|"}) {
    CHECK_FALSE(is_table_delimiter(line));
  }
}

TEST_CASE("separators are three marks of a kind") {
  for (const std::string_view line : {"---", "- - -", " ***\n", "___", "=====", "~~~", "###"}) {
    CHECK(is_separator(line));
  }
  for (const std::string_view line : {"", "--", "- -", "--=", "---a", "...", "\n"}) {
    CHECK_FALSE(is_separator(line));
  }
}

}  // namespace
}  // namespace incipit::compress
