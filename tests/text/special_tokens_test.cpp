// SPDX-License-Identifier: Apache-2.0
#include "text/special_tokens.h"

#include <tuple>
#include <utility>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

SpecialTokens sample() {
  return SpecialTokens({{"<a>", 1}, {"<a>b", 2}, {"<ab", 3}, {"b<", 4}, {"\xff\x80", 5}, {"", 6}});
}

using Found = std::vector<std::tuple<std::size_t, std::size_t, TokenId>>;

Found all_of(const SpecialTokens& tokens, std::string_view text) {
  Found found;
  SpecialTokenSearch search(text);
  while (true) {
    const SpecialTokenSearch::Match match = search.next(tokens);
    if (match.id < 0) break;
    found.emplace_back(match.begin, match.end, match.id);
  }
  return found;
}

TEST_CASE("the leftmost token is found, and the longest that begins there") {
  const SpecialTokens tokens = sample();
  CHECK(all_of(tokens, "").empty());
  CHECK(all_of(tokens, "<a").empty());
  CHECK(all_of(tokens, "x<a>") == Found{{1, 4, 1}});
  CHECK(all_of(tokens, "<a>b") == Found{{0, 4, 2}});
  CHECK(all_of(tokens, "<a>b<") == Found{{0, 4, 2}});  // "b<" begins inside
  CHECK(all_of(tokens, "<ab<a>") == Found{{0, 3, 3}, {3, 6, 1}});
  CHECK(all_of(tokens, "<<a>>b<a>") == Found{{1, 4, 1}, {5, 7, 4}});
  CHECK(all_of(tokens, "\xff\xff\x80") == Found{{1, 3, 5}});
  CHECK(all_of(SpecialTokens({}), "<a>").empty());
}

TEST_CASE("without a match the whole text is ordinary") {
  const SpecialTokens tokens = sample();
  SpecialTokenSearch search("abc");
  const SpecialTokenSearch::Match match = search.next(tokens);
  CHECK(match.id == -1);
  CHECK(match.begin == 3);
  CHECK(match.end == 3);
}

TEST_CASE("in an open text nothing is decided where its end is inside a token") {
  const SpecialTokens tokens = sample();
  const auto begin_of = [&](std::string_view text) {
    const SpecialTokenSearch::Match match = SpecialTokenSearch(text, true).next(tokens);
    return std::pair(match.begin, match.id);
  };
  CHECK(begin_of("") == std::pair(std::size_t{0}, -1));
  CHECK(begin_of("xyz") == std::pair(std::size_t{3}, -1));
  CHECK(begin_of("x<") == std::pair(std::size_t{1}, -1));
  CHECK(begin_of("x<a") == std::pair(std::size_t{1}, -1));
  CHECK(begin_of("x<a>") == std::pair(std::size_t{1}, -1));  // may become "<a>b"
  CHECK(begin_of("x<a>y") == std::pair(std::size_t{1}, 1));
  CHECK(begin_of("x<a>b") == std::pair(std::size_t{1}, 2));
  CHECK(begin_of("x<ay") == std::pair(std::size_t{4}, -1));
  CHECK(begin_of("<ab") == std::pair(std::size_t{0}, 3));
}

SpecialTokens with_rules() {
  return SpecialTokens({{"<l>", 1, {.strip_left = true}},
                        {"<r>", 2, {.strip_right = true}},
                        {"<b>", 3, {.strip_left = true, .strip_right = true}},
                        {"word", 4, {.whole_word = true}},
                        {" ", 5}});
}

TEST_CASE("white space goes with the token that strips it") {
  const SpecialTokens tokens({{"<l>", 1, {.strip_left = true}},
                              {"<r>", 2, {.strip_right = true}},
                              {"<b>", 3, {.strip_left = true, .strip_right = true}}});
  CHECK(all_of(tokens, "a <l> b") == Found{{1, 5, 1}});
  CHECK(all_of(tokens, "a\u3000\t<l>") == Found{{1, 8, 1}});
  CHECK(all_of(tokens, "a <r> \n\u00a0b") == Found{{2, 9, 2}});
  CHECK(all_of(tokens, " <b> ") == Found{{0, 5, 3}});
  // White space between two goes with the first.
  CHECK(all_of(tokens, "<r>  <l>") == Found{{0, 5, 2}, {5, 8, 1}});
  CHECK(all_of(tokens, "\xe3\x80<l>") == Found{{2, 5, 1}});  // no character, so no white space
}

TEST_CASE("a stripped token may stand in the white space of another") {
  CHECK(all_of(with_rules(), "<r>  x") == Found{{0, 5, 2}, {5, 5, 5}, {5, 5, 5}});
}

TEST_CASE("a token that has to be a word is passed over within one") {
  const SpecialTokens tokens = with_rules();
  for (const char* text : {"aword", "worda", "word_", "9word", "word\u0301", "\u00e9word",
                           "word\u0663", "\u24b6word", "wordword"}) {
    CHECK(all_of(tokens, text).empty());
  }
  for (const char* text : {"word", "-word", "word.", "\u3002word", "word\u00b2", "\xffword"}) {
    CHECK(all_of(tokens, text).size() == 1);
  }
}

TEST_CASE("in an open text what may still be stripped, or a word, is left") {
  const SpecialTokens tokens = with_rules();
  const auto first = [&](std::string_view text) {
    const SpecialTokenSearch::Match match = SpecialTokenSearch(text, true).next(tokens);
    return std::pair(match.begin, match.id);
  };
  CHECK(first("ab<r>") == std::pair(std::size_t{2}, -1));
  CHECK(first("ab<r>\n") == std::pair(std::size_t{2}, -1));
  CHECK(first("ab<r>\xe3\x80") == std::pair(std::size_t{2}, -1));
  CHECK(first("ab<r>\nx") == std::pair(std::size_t{2}, 2));
  CHECK(first("-word") == std::pair(std::size_t{1}, -1));
  CHECK(first("-word-") == std::pair(std::size_t{1}, 4));
  CHECK(first("ab\t\n") == std::pair(std::size_t{2}, -1));  // "<l>" may follow
  CHECK(first("ab\t\xe3\x80") == std::pair(std::size_t{2}, -1));
}

TEST_CASE("in an open text white space is not stripped where a token begins in it") {
  const SpecialTokens tokens({{"<r>", 1, {.strip_right = true}}, {" xy", 2}});
  const auto first = [&](std::string_view text) {
    return SpecialTokenSearch(text, true).next(tokens).id;
  };
  CHECK(first("<r>  x") == -1);  // may become " xy"
  CHECK(first("<r>  xy") == 1);
  CHECK(first("<r>  xz") == 1);
}

TEST_CASE("a search goes on where another one stopped") {
  const SpecialTokens tokens({{"ab cd", 1, {.whole_word = true}}, {"cd", 2}});
  const std::string text = "xab cd-cd.";
  SpecialTokenSearch whole(text, /*open=*/true);
  REQUIRE(whole.next(tokens).begin == 7);
  for (const std::size_t seam : {0u, 1u, 2u, 4u, 5u, 6u, 7u}) {
    SpecialTokenSearch rest(std::string_view(text).substr(seam), false, whole.seam_at(seam));
    CHECK(rest.next(tokens).begin == 7 - seam);
  }
  CHECK(whole.seam_at(1).after_word);
  CHECK(whole.seam_at(1).passed == 0);
  CHECK_FALSE(whole.seam_at(4).after_word);
  CHECK(whole.seam_at(4).passed == 2);
  CHECK(whole.seam_at(6).passed == 0);
}

TEST_CASE("a search may be held back, and sent on") {
  const SpecialTokens tokens({{"<a>", 1}});
  SpecialTokenSearch search("<a><a>x<a>");
  CHECK(search.next(tokens, 2).id == -1);
  search.skip_to(3);
  CHECK(search.next(tokens).begin == 3);
  search.skip_to(1);  // never back
  CHECK(search.next(tokens).begin == 7);
}

TEST_CASE("white space that many tokens could strip costs linear time") {
  const SpecialTokens tokens({{"  ", 1, {.strip_right = true}}, {"\t", 2, {.strip_left = true}}});
  CHECK(all_of(tokens, repeated(" ", 1 << 18)).size() == 1 << 17);
  CHECK(all_of(tokens, repeated(" \t", 1 << 17)).size() == 1 << 17);
}

TEST_CASE("tokens of one text and endless tokens are refused") {
  const auto twice = failure_of([] { SpecialTokens({{"<a>", 1}, {"<b>", 2}, {"<a>", 3}}); });
  CHECK(twice.code == ErrorCode::kModelUnreadable);
  CHECK_THAT(twice.message, Catch::Contains("<a>"));
  CHECK_NOTHROW(SpecialTokens({{std::string(1024, 'a'), 1}}));
  CHECK(failure_of([] {
          SpecialTokens({{std::string(1025, 'a'), 1}});
        }).code == ErrorCode::kModelUnreadable);
}

}  // namespace
}  // namespace incipit::text
