// SPDX-License-Identifier: Apache-2.0
#include "sampler/letter.h"

#include <string>
#include <utility>
#include <vector>

#include "incipit/error.h"
#include "incipit/self_consistency.h"
#include "support/catch.h"

using incipit::sampler::answer_letter;
using incipit::sampler::single_letter;

TEST_CASE("the letter of a multiple-choice answer") {
  for (const auto& [text, letter] : std::vector<std::pair<std::string, std::string>>{
           {"B", "B"},
           {"b", "B"},
           {"(B)", "B"},
           {"(b).", "B"},
           {"**B**", "B"},
           {"B.", "B"},
           {"B) because", "B"},
           {"B: Paris", "B"},
           {"The answer is B.", "B"},
           {"The answer is (b).", "B"},
           {"The answer is: B", "B"},
           {"Answer: **C**", "C"},
           {"ANSWER IS D", "D"},
           {"The answer is A", "A"},
           {"the answer is \\boxed{D}", "D"},
           // Options that are restated do not count against an answer that is announced.
           {"Options: (A) red (B) blue (C) green. The answer is (B). Not (C).", "B"},
           {"(A) is wrong, so it is (C)", "C"},
           {"I think A is wrong and C right: C", "C"},
           // An article is no answer, and neither is the pronoun.
           {"A dog has four legs, so B", "B"},
           {"B. A good choice", "B"},
           {"Answer: A", "A"},
           {"The answer is A, then the answer is B", "B"},
           {"选B。", "none"},
           {"答案 B", "B"},
       }) {
    CAPTURE(text);
    CHECK(answer_letter(text, 5).value_or("none") == letter);
  }
}

TEST_CASE("a text without a letter among the choices has none") {
  for (const std::string text :
       {"", "none of these", "F", "The answer is F.", "A's", "x-A", "A-level",
        "the answer is a number", "ABC", "A1", "B\xC3\xA4", "AA"}) {
    CAPTURE(text);
    CHECK_FALSE(answer_letter(text, 5));
  }
  CHECK(answer_letter("F", 6) == "F");
  CHECK_FALSE(answer_letter("B", 1));
  CHECK(answer_letter("Z", 26) == "Z");
}

TEST_CASE("extract::letter takes 1 to 26 choices") {
  CHECK(incipit::extract::letter()("The answer is E.") == "E");
  CHECK(incipit::extract::letter(26)("Z") == "Z");
  CHECK_THROWS_AS(incipit::extract::letter(0), incipit::Error);
  CHECK_THROWS_AS(incipit::extract::letter(27), incipit::Error);
}

TEST_CASE("a single letter, whatever is around it") {
  CHECK(single_letter(" (b). ") == "B");
  CHECK(single_letter("$C$") == "C");
  CHECK_FALSE(single_letter(""));
  CHECK_FALSE(single_letter("()"));
  CHECK_FALSE(single_letter("AB"));
  CHECK_FALSE(single_letter("1"));
  CHECK_FALSE(single_letter("\xC3\xA4"));
}
