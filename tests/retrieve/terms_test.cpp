// SPDX-License-Identifier: Apache-2.0
#include "retrieve/terms.h"

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.h"

using incipit::retrieve::for_each_term;

namespace {

std::vector<std::uint64_t> terms(std::string_view text) {
  std::vector<std::uint64_t> found;
  for_each_term(text, [&](std::uint64_t term) { found.push_back(term); });
  return found;
}

}  // namespace

TEST_CASE("terms do not depend on case, form or possessives") {
  CHECK(terms("Hello WORLD") == terms("hello, world!"));
  CHECK(terms("ÄRGER Привет") == terms("ärger привет"));
  CHECK(terms("Anna's dog") == terms("anna dog"));
  CHECK(terms("Anna\u2019s") == terms("ANNA'S"));
  CHECK(terms("don't") == terms("DON\u2019T"));
  CHECK(terms("\uFF21\uFF22\uFF23 \uFF11\uFF12") == terms("abc 12"));
}

TEST_CASE("terms differ where words do") {
  const std::vector<std::uint64_t> found = terms("one two One 12 21");
  REQUIRE(found.size() == 5);
  CHECK(found[0] == found[2]);
  CHECK(found[0] != found[1]);
  CHECK(found[3] != found[4]);
  CHECK(terms("s") != terms("'s a"));
}

TEST_CASE("scripts without spaces give pairs of neighbours") {
  CHECK(terms("我爱你").size() == 2);
  CHECK(terms("我爱你")[0] == terms("我爱")[0]);
  CHECK(terms("我爱你")[1] == terms("爱你")[0]);
  CHECK(terms("我，爱").size() == 2);
  CHECK(terms("我，爱")[0] == terms("我")[0]);
  CHECK(terms("第3章") ==
        std::vector<std::uint64_t>{terms("第")[0], terms("3")[0], terms("章")[0]});
  CHECK(terms("カナ").size() == 1);
  CHECK(terms("한국어 단어").size() == 2);
}

TEST_CASE("words are terms wherever they end, in ASCII and beyond") {
  const std::uint64_t word = terms("word")[0];
  for (const char* const text : {"word", "Word.", "word,", "word?", "(WORD)", "word's", "word'",
                                 "'word", "word.\u3002", "\u3002word", "\u4E2Dword"}) {
    INFO(text);
    CHECK(terms(text).back() == word);
  }
  CHECK(terms("word.\u3002word").size() == 2);
  CHECK(terms("wor\u0301d").size() == 1);
  CHECK(terms("wor\u0301d")[0] != word);
  CHECK(terms("1.5") != terms("1 5"));
  CHECK(terms("1.\u0665").size() == 1);  // a digit, too
  CHECK(terms("a.5").size() == 2);
  CHECK(terms("x_1\u4E2D\u6587").size() == 2);
}

TEST_CASE("words are shown with their terms") {
  std::vector<std::string> words;
  std::size_t count = 0;
  const std::string text = "Don't wait, 2nd \u4E2D\u6587\u5B57";
  for_each_term(
      text, [&](std::uint64_t) { ++count; },
      [&](const incipit::text::Word& word) { words.emplace_back(word.span.of(text)); });
  CHECK(words == std::vector<std::string>{"Don't", "wait", "2nd", "\u4E2D", "\u6587", "\u5B57"});
  CHECK(count == 5);
}

TEST_CASE("texts without words have no terms, and bytes that are no UTF-8 do no harm") {
  CHECK(terms("").empty());
  CHECK(terms(" .,!?\n\t").empty());
  CHECK(terms("\xFF\xC0 \xE3\x80").empty());
  CHECK(terms("a\xFF"
              "b") == terms("a b"));
}
