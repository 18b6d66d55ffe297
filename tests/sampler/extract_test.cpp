// SPDX-License-Identifier: Apache-2.0
// The extractors that have no file of their own: last_line, after, boxed.
#include <optional>
#include <string>

#include "incipit/error.h"
#include "incipit/self_consistency.h"
#include "support/catch.h"

namespace extract = incipit::extract;
using Found = std::optional<std::string>;

TEST_CASE("last_line is the last one with something on it") {
  const auto last_line = extract::last_line();
  CHECK(last_line("one") == Found("one"));
  CHECK(last_line("one\ntwo") == Found("two"));
  CHECK(last_line("one\n  two \r\n\n \t\n") == Found("two"));
  CHECK(last_line("") == std::nullopt);
  CHECK(last_line(" \n \n") == std::nullopt);
}

TEST_CASE("after takes the rest of the line behind the last marker") {
  const auto after = extract::after();
  CHECK(after("#### 18") == Found("18"));
  CHECK(after("####18 \nand so on") == Found("18"));
  // The first one may be a worked example that the model recites.
  CHECK(after("Q: ...\n#### 3\nQ: ...\n#### 18\n") == Found("18"));
  CHECK(after("##### 18") == Found("18"));
  CHECK(after("no marker") == std::nullopt);
  CHECK(after("####") == std::nullopt);
  CHECK(after("#### \n18") == std::nullopt);
  CHECK(extract::after("A:")("A: 18") == Found("18"));
  CHECK_THROWS_AS(extract::after(""), incipit::Error);
}

TEST_CASE("boxed takes what the last whole box holds") {
  const auto boxed = extract::boxed();
  CHECK(boxed("so \\boxed{18}.") == Found("18"));
  CHECK(boxed("\\boxed {18}") == Found("18"));
  CHECK(boxed("\\boxed{\\frac{1}{2}}") == Found("\\frac{1}{2}"));
  CHECK(boxed("\\boxed{1} or \\boxed{ 2 }") == Found("2"));
  CHECK(boxed("\\boxed{\\{1, 2\\}}") == Found("\\{1, 2\\}"));
  CHECK(boxed("\\boxed{\\boxed{5}}") == Found("5"));
  CHECK(boxed("{\\boxed{5}} {6}") == Found("5"));
  CHECK(boxed("}} \\boxed{5}") == Found("5"));
  CHECK(boxed("\\boxed{5} and \\boxed{6") == Found("5"));  // cut off
  CHECK(boxed("\\boxed{{{5}}") == std::nullopt);
  CHECK(boxed("\\boxed 5") == std::nullopt);
  CHECK(boxed("\\boxed{}") == std::nullopt);
  CHECK(boxed("\\boxed") == std::nullopt);
  CHECK(boxed("") == std::nullopt);
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "\\boxed{";
  CHECK(boxed(deep) == std::nullopt);
  CHECK(boxed(deep + "1" + std::string(100'000, '}')) == Found("1"));
}

TEST_CASE("last_number is there as an extractor") {
  CHECK(extract::last_number()("2 + 2 = 4") == Found("4"));
}
