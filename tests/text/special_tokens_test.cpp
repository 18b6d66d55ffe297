// SPDX-License-Identifier: Apache-2.0
#include "text/special_tokens.h"

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
  for (std::size_t done = 0; done < text.size();) {
    const SpecialTokens::Match match = tokens.find(text, done);
    if (match.id < 0) break;
    found.emplace_back(match.begin, match.end, match.id);
    done = match.end;
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
  const SpecialTokens::Match match = sample().find("abc", 1);
  CHECK(match.id == -1);
  CHECK(match.begin == 3);
  CHECK(match.end == 3);
}

TEST_CASE("in an open text nothing is decided where its end is inside a token") {
  const SpecialTokens tokens = sample();
  const auto begin_of = [&](std::string_view text) {
    const SpecialTokens::Match match = tokens.find_in_open_text(text, 0);
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
