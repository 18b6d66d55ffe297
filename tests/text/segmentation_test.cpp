// SPDX-License-Identifier: Apache-2.0
#include "text/segmentation.h"

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.h"
#include "text/utf8.h"

using namespace incipit::text;

namespace {

using Strings = std::vector<std::string>;

Strings split(std::string_view text) {
  Strings parts;
  for (const Span& span : sentences(text)) parts.emplace_back(span.of(text));
  return parts;
}

Strings words_of(std::string_view text) {
  Strings parts;
  for (const Word& word : words(text)) parts.emplace_back(word.span.of(text));
  return parts;
}

Strings graphemes_of(std::string_view text) {
  Strings parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(text, at);
    REQUIRE(end > at);
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

/// Many texts of a few characters that matter to segmentation.
template <class Check>
void for_random_texts(const std::vector<std::string>& alphabet, std::size_t texts, Check check) {
  std::uint64_t state = 7;
  const auto draw = [&](std::size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (std::size_t i = 0; i < texts; ++i) {
    std::string text;
    for (std::size_t size = draw(24); size > 0; --size) text += alphabet[draw(alphabet.size())];
    check(text);
  }
}

const std::vector<std::string> kTricky{
    "a",          "B",          "1",      ".",      "?",      "!",        ";",      " ",
    "\t",         "\n",         "\r",     "\"",     ")",      "'",        ",",      "_",
    "Dr",         "e.g",        "\u3002", "\uFF1F", "\uFF01", "\u300D",   "\u3000", "\u00A0",
    "\u0301",     "\u200D",     "\u2026", "\u2028", "\u4F60", "\u3042",   "\u0E01", "\u0E34",
    "\U0001F468", "\U0001F1E9", "\u061F", "\u0627", "\xFF",   "\xE3\x80", "\xE3",   "\x80"};

}  // namespace

TEST_CASE("sentences end at marks, with the white space behind them") {
  CHECK(split("Hello there.  How are you? Fine!") ==
        Strings{"Hello there.  ", "How are you? ", "Fine!"});
  CHECK(split("He said \"Stop!\" Then he left.") == Strings{"He said \"Stop!\" ", "Then he left."});
  CHECK(split("Really?! Yes... No.") == Strings{"Really?! ", "Yes... ", "No."});
  CHECK(split("do this; then that") == Strings{"do this; ", "then that"});
  CHECK(split("no end") == Strings{"no end"});
  CHECK(split("") == Strings{});
}

TEST_CASE("sentences of scripts without spaces end at their own marks") {
  CHECK(split("你好。你在吗？在！好；行") == Strings{"你好。", "你在吗？", "在！", "好；", "行"});
  CHECK(split("他说：「走吧。」然后走了。") == Strings{"他说：「走吧。」", "然后走了。"});
  CHECK(split("これはペンです。 ほら｡") == Strings{"これはペンです。 ", "ほら｡"});
  CHECK(split("كيف حالك؟ بخير.") == Strings{"كيف حالك؟ ", "بخير."});
  CHECK(split("वह गया। फिर आया॥") == Strings{"वह गया। ", "फिर आया॥"});
  CHECK(split("价格是3.5元。") == Strings{"价格是3.5元。"});
}

TEST_CASE("full stops that end nothing") {
  CHECK(split("It is 3.14 now. v1.2.3 came.") == Strings{"It is 3.14 now. ", "v1.2.3 came."});
  CHECK(split("Dr. Smith met Mr. J. R. Jones. They talked.") ==
        Strings{"Dr. Smith met Mr. J. R. Jones. ", "They talked."});
  CHECK(split("Fruit, e.g. Apples, i.e. food. Next.") ==
        Strings{"Fruit, e.g. Apples, i.e. food. ", "Next."});
  CHECK(split("In the U.S. Army at 5 p.m. sharp. Done.") ==
        Strings{"In the U.S. Army at 5 p.m. sharp. ", "Done."});
  CHECK(split("We sell pens etc. in boxes. I said no. She left.") ==
        Strings{"We sell pens etc. in boxes. ", "I said no. ", "She left."});
  CHECK(split("See no. 5 and fig. 3. So do I. You too.") ==
        Strings{"See no. 5 and fig. 3. ", "So do I. ", "You too."});
  CHECK(split("1. First thing. 2. Second thing.") ==
        Strings{"1. First thing. ", "2. Second thing."});
  CHECK(split("open http://a.b/c?d=1 or x.txt") == Strings{"open http://a.b/c?d=1 or x.txt"});
  CHECK(split("i went home. it rained.") == Strings{"i went home. ", "it rained."});
}

TEST_CASE("line breaks end sentences, even of abbreviations") {
  CHECK(split("one\ntwo\r\nthree\u2028four") == Strings{"one\n", "two\r\n", "three\u2028", "four"});
  CHECK(split("Dear Dr.\nSmith") == Strings{"Dear Dr.\n", "Smith"});
  CHECK(split("a.  \n\n  \n  b") == Strings{"a.  \n\n  \n", "  b"});
  CHECK(split("\n \n  a\nb") == Strings{"\n \n  a\n", "b"});
  CHECK(split(" \n\t") == Strings{" \n\t"});
}

TEST_CASE("sentences tile any bytes and cut no grapheme") {
  for_random_texts(kTricky, 20000, [](const std::string& text) {
    std::size_t at = 0;
    std::vector<bool> boundary(text.size() + 1);
    for (std::size_t i = 0; i < text.size(); i = grapheme_end(text, i)) boundary[i] = true;
    boundary[text.size()] = true;
    bool whole = true;
    for (const Span& span : sentences(text)) {
      whole = whole && span.begin == at && span.end > at && boundary[span.end];
      at = span.end;
    }
    INFO(text);
    if (!whole || at != text.size()) FAIL("not tiled");
  });
  SUCCEED();
}

TEST_CASE("a mark that combines with a full stop or a space keeps the sentence") {
  CHECK(split("a.\u0301 b") == Strings{"a.\u0301 b"});
  CHECK(split("a. \u0301b") == Strings{"a. \u0301b"});
}

TEST_CASE("sentences take linear time") {
  for (const char* unit :
       {".", "\n", " ", "a. ", "\u3002", "Dr. ", "1. ", ".\"", "\u0301", ". \u0301"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    CHECK(sentences(text).back().end == text.size());
  }
}

TEST_CASE("graphemes") {
  CHECK(graphemes_of("ab\r\nc\n") == Strings{"a", "b", "\r\n", "c", "\n"});
  CHECK(graphemes_of("e\u0301x") == Strings{"e\u0301", "x"});
  const std::string family = "\U0001F468\u200D\U0001F469\u200D\U0001F467";
  CHECK(graphemes_of(family + "\U0001F44D\U0001F3FD") == Strings{family, "\U0001F44D\U0001F3FD"});
  CHECK(graphemes_of("\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7") ==
        Strings{"\U0001F1E9\U0001F1EA", "\U0001F1EB\U0001F1F7"});
  CHECK(graphemes_of("\xFF\u0301a\xE3\x80") == Strings{"\xFF", "\u0301", "a", "\xE3\x80"});
}

TEST_CASE("words") {
  CHECK(words_of("Don't panic, it\u2019s 3.14 or 1,234.5!") ==
        Strings{"Don't", "panic", "it\u2019s", "3.14", "or", "1,234.5"});
  CHECK(words_of("snake_case x86 'quoted' end. a.b well-known") ==
        Strings{"snake_case", "x86", "quoted", "end", "a", "b", "well", "known"});
  CHECK(words_of("我有3只猫") == Strings{"我", "有", "3", "只", "猫"});
  CHECK(words_of("ひらカナ한국어") == Strings{"ひ", "ら", "カ", "ナ", "한국어"});
  CHECK(words_of("\u0E01\u0E34\u0E19") == Strings{"\u0E01\u0E34", "\u0E19"});
  CHECK(words_of("Müller naïve e\u0301te\u0301 привет سلام") ==
        Strings{"Müller", "naïve", "e\u0301te\u0301", "привет", "سلام"});
  CHECK(words_of("\xFF"
                 "ab\xE3\x80"
                 "c") == Strings{"ab", "c"});
  CHECK(words_of("") == Strings{});
}

TEST_CASE("words from a place on") {
  const std::string_view text = "one two\u3002three";
  WordScanner scanner(text, 3);
  Word word;
  REQUIRE(scanner.next(word));
  CHECK(word.span.of(text) == "two");
  REQUIRE(scanner.next(word));
  CHECK(word.span.of(text) == "three");
  CHECK(!scanner.next(word));
  CHECK(!WordScanner(text, text.size()).next(word));
}

TEST_CASE("kinds of words") {
  const std::vector<Word> found = words("abc 2nd 好");
  REQUIRE(found.size() == 3);
  CHECK(found[0].kind == Word::Kind::kLetters);
  CHECK(found[1].kind == Word::Kind::kNumber);
  CHECK(found[2].kind == Word::Kind::kCharacter);
}

TEST_CASE("words of any bytes are in order and whole") {
  for_random_texts(kTricky, 20000, [](const std::string& text) {
    std::size_t at = 0;
    bool good = true;
    for (const Word& word : words(text)) {
      good = good && word.span.begin >= at && word.span.end > word.span.begin &&
             valid_front(word.span.of(text)) == word.span.end - word.span.begin;
      at = word.span.end;
    }
    INFO(text);
    if (!good || at > text.size()) FAIL("not in order");
  });
  SUCCEED();
}
