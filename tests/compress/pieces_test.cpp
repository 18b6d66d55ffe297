// SPDX-License-Identifier: Apache-2.0
#include "compress/pieces.h"

#include <chrono>
#include <string>

#include "compress/mixed_text.h"
#include "support/catch.h"

namespace incipit::compress {
namespace {

struct Shown {
  std::string text;
  PieceKind kind;
  bool operator==(const Shown&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Shown& shown) {
  return out << static_cast<int>(shown.kind) << ":'" << shown.text << "'";
}

std::vector<Shown> shown(std::string_view text) {
  std::vector<Shown> all;
  for (const Piece& piece : pieces(text))
    all.push_back({std::string(piece.span.of(text)), piece.kind});
  return all;
}

constexpr PieceKind kText = PieceKind::kSentence, kCode = PieceKind::kCode,
                    kJson = PieceKind::kJson, kTable = PieceKind::kTable, kLog = PieceKind::kLog;
using All = std::vector<Shown>;

TEST_CASE("prose is cut into sentences") {
  CHECK(shown("") == All{});
  CHECK(shown("One. Two!\n三。四？") ==
        All{{"One. ", kText}, {"Two!\n", kText}, {"三。", kText}, {"四？", kText}});
}

TEST_CASE("a code block is one piece, whatever is in it") {
  CHECK(shown("See:\n```py\na = 1\n\n# One. Two.\n```\n\nDone.") ==
        All{{"See:\n", kText}, {"```py\na = 1\n\n# One. Two.\n```\n\n", kCode}, {"Done.", kText}});
  CHECK(shown("~~~\n```\n~~~~ \nx") == All{{"~~~\n```\n~~~~ \n", kCode}, {"x", kText}});
  CHECK(shown("````md\n```\nin\n```\n````\nx") ==
        All{{"````md\n```\nin\n```\n````\n", kCode}, {"x", kText}});
  CHECK(shown("```\r\ncode\r\n```\r\nx") == All{{"```\r\ncode\r\n```\r\n", kCode}, {"x", kText}});
}

TEST_CASE("a code block that nothing closes runs to the end") {
  CHECK(shown("```\na. b.\n\nc") == All{{"```\na. b.\n\nc", kCode}});
  CHECK(shown("```\na\n~~~\n``\n    ```\n``` x\n").size() == 1);
}

TEST_CASE("what only looks like a fence is prose") {
  CHECK(shown("``` a`b\nx\n")[0].kind == kText);
  CHECK(shown("``\nx\n``\n")[0].kind == kText);
  CHECK(shown("    ```\n    x\n")[0].kind == kText);  // an indented block
  CHECK(shown("a ```\nb\n")[0].kind == kText);
}

TEST_CASE("code blocks in lists and quotes end with what holds them") {
  CHECK(shown("1. Do:\n\n   ```sh\n   ls\n   ```\n2. Then\n") ==
        All{{"1. Do:\n\n", kText}, {"   ```sh\n   ls\n   ```\n", kCode}, {"2. Then\n", kText}});
  CHECK(shown("- ```\n  x\nafter\n") == All{{"- ```\n  x\n", kCode}, {"after\n", kText}});
  CHECK(shown("> ```\n> x\nafter\n") == All{{"> ```\n> x\n", kCode}, {"after\n", kText}});
  CHECK(shown("> ```\n> x\n> ```\n> y\n")[0] == Shown{"> ```\n> x\n> ```\n", kCode});
}

TEST_CASE("JSON that parses is one piece") {
  CHECK(shown("{\"a\": \"One. Two.\",\n \"b\": []}\nx") ==
        All{{"{\"a\": \"One. Two.\",\n \"b\": []}\n", kJson}, {"x", kText}});
  CHECK(shown("Result: {\"a\": \"x. y.\"} and more.") ==
        All{{"Result: ", kText}, {"{\"a\": \"x. y.\"} ", kJson}, {"and more.", kText}});
  CHECK(shown("结果：{\"a\":1}。") == All{{"结果：", kText}, {"{\"a\":1}", kJson}, {"。", kText}});
  CHECK(shown("{\"a\":1}\n{\"a\":2}\n") == All{{"{\"a\":1}\n", kJson}, {"{\"a\":2}\n", kJson}});
  CHECK(shown("[]") == All{{"[]", kJson}});
  CHECK(shown("{}") == All{{"{}", kJson}});
}

TEST_CASE("brackets of prose and broken JSON are prose") {
  for (const std::string_view text : {"See [1] for it.", "[1] A note.", "{a, b}",
                                      "{\"a\": ", "[1, 2", "{\"a\": \"\\u00e\"}", "a[0] = {1};"}) {
    for (const Shown& piece : shown(text)) {
      if (piece.kind != kText) FAIL_CHECK(text);
    }
  }
}

TEST_CASE("JSON with a mark on its bracket is not cut from it") {
  const std::string text = "x {\"a\":1}\u0301 y";
  for (const Shown& piece : shown(text)) CHECK(piece.kind == kText);
}

TEST_CASE("tables are one piece") {
  CHECK(shown("T:\n| a | b |\n|---|---|\n| 1. | 2. |\n\nx") ==
        All{{"T:\n", kText}, {"| a | b |\n|---|---|\n| 1. | 2. |\n\n", kTable}, {"x", kText}});
  CHECK(shown("a | b\n--|--\n1 | 2\nx") == All{{"a | b\n--|--\n1 | 2\n", kTable}, {"x", kText}});
  CHECK(shown("+---+\n| a |\n+---+\n") == All{{"+---+\n| a |\n+---+\n", kTable}});
  CHECK(shown("| alone |\n")[0].kind == kText);
  CHECK(shown("a || b\nc\n")[0].kind == kText);
}

TEST_CASE("lines of a log are pieces of their own") {
  const std::string_view log =
      "2024-05-01T10:00:00Z start. now.\n[2024/05/01 10:00:01] x\nMay  1 10:00:00 host x\n"
      "10:11:12.123 y\nI0501 10:00:00.1 z.cc\nWARN: a. b.\n[ERROR] c\nINFO\td\n";
  const All all = shown(log);
  CHECK(all.size() == 8);
  for (const Shown& piece : all) CHECK(piece.kind == kLog);
  CHECK(shown("Information. More.\n").size() == 2);
  CHECK(shown("ERROR\n")[0].kind == kText);
  CHECK(shown("2024 was good.\n")[0].kind == kText);
}

TEST_CASE("white space belongs to the piece in front of it") {
  CHECK(shown(" \n{\"a\":1}") == All{{" \n{\"a\":1}", kJson}});
  CHECK(shown("  \n\n") == All{{"  \n\n", kText}});
  CHECK(shown("{\"a\":1}\n\n  {\"a\":2}") == All{{"{\"a\":1}\n\n", kJson}, {"  {\"a\":2}", kJson}});
}

TEST_CASE("tiles random texts between graphemes") {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = mixed_text(random, 1 + below(random, 24));
    std::vector<bool> is_border(text.size() + 1);
    for (std::size_t at = 0; at < text.size(); at = text::grapheme_end(text, at))
      is_border[at] = true;
    is_border[text.size()] = true;
    std::size_t end = 0;
    for (const Piece& piece : pieces(text)) {
      if (piece.span.begin != end || piece.span.end <= end || !is_border[end]) {
        INFO(text);
        FAIL("at byte " << end);
      }
      end = piece.span.end;
    }
    if (end != text.size()) FAIL(text);
  }
}

TEST_CASE("long and hostile texts take linear time") {
  const auto repeated = [](std::string_view part, std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += part;
    return text;
  };
  for (const std::string_view part :
       {"[", "{\"",     "{\"a\":[", "[{\"a\":1},", "```",    "```\n", "- ",  "- - -\n",
        ">", "> ```\n", "|\n",      "|-|\n",       "+-\n",   "{ \n",  "[ {", "\"[\",",
        "a", "。",      "\u0301",   "👩‍",     "INFO\n", "\n",    " ",   "x {"}) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string text = repeated(part, 400000);
    CHECK(!pieces(text).empty());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (seconds.count() > 4) FAIL_CHECK(part << " takes " << seconds.count() << " s");
  }
}

}  // namespace
}  // namespace incipit::compress
