// SPDX-License-Identifier: Apache-2.0
#include "sampler/pattern.h"

#include <string>

#include "incipit/error.h"
#include "incipit/self_consistency.h"
#include "support/catch.h"

using incipit::sampler::Pattern;

namespace {

std::string last(std::string_view regex, std::string_view text) {
  return Pattern(regex).last_match(text).value_or("none");
}

}  // namespace

TEST_CASE("the last match counts, of its first group where there is one") {
  CHECK(last("[0-9]+", "1 and 22 and 333.") == "333");
  CHECK(last("answer is (\\w+)", "the answer is B, no, the answer is C.") == "C");
  CHECK(last("(?:a|b)c", "ac bc") == "bc");
  CHECK(last("x|(y)", "y x") == "x");  // the group took no part
  CHECK(last("x", "y") == "none");
  CHECK(last("x", "") == "none");
  CHECK(last("^", "abc").empty());
  CHECK(last("(?m)^.*$", "one\ntwo").size() == 3);
}

TEST_CASE("matches of nothing do not stop the search") {
  CHECK(last("[0-9]*", "12 ab 34 \xC3\xA4").empty());
  CHECK(last("x*", "\xE7\xAD\x94").empty());
  CHECK(last("(?=b)|b", "abab") == "b");
}

TEST_CASE("characters are Unicode's, and damaged text is no error") {
  CHECK(last("(\\p{Han}+)", "ok \xE7\xAD\x94\xE6\xA1\x88 5") == "\xE7\xAD\x94\xE6\xA1\x88");
  CHECK(last("(?i)\xC3\x84", "\xC3\xA4") == "\xC3\xA4");
  CHECK(last("[0-9]+", "\xFF 5 \xC3") == "5");
}

TEST_CASE("a wrong pattern is the caller's error") {
  for (const std::string pattern : {"(", "[", "a{2,1}", "\\", "\\C", "\xFF"}) {
    CAPTURE(pattern);
    try {
      const Pattern compiled{pattern};
      FAIL("accepted");
    } catch (const incipit::Error& error) {
      CHECK(error.code() == incipit::ErrorCode::kInvalidArgument);
      CHECK(std::string(error.what()).find("byte") != std::string::npos);
    }
  }
  CHECK_THROWS_AS(Pattern(std::string(70'000, 'a')), incipit::Error);
  CHECK_THROWS_AS(incipit::extract::regex("("), incipit::Error);
  CHECK(incipit::extract::regex("b(.)")("abc") == "c");
}

TEST_CASE("a pattern that backtracks without end is given up") {
  CHECK(last("(a+)+$", std::string(5000, 'a') + "b") == "none");
  CHECK(last("(?:(?:a|aa)+)*c", std::string(5000, 'a')) == "none");
  // Matches before that are kept, and there may be very many of them.
  CHECK(last("b|(a+)+$", "b" + std::string(5000, 'a') + "b") == "b");
  CHECK(last("a", std::string(100'000, 'a')) == "a");
}
