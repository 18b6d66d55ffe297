// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>

#include "incipit/self_consistency.h"
#include "support/catch.h"

namespace keys = incipit::keys;
using Key = std::optional<std::string>;

TEST_CASE("texts are one key whatever their case, spaces and dots") {
  const auto text = keys::text();
  CHECK(text("Oslo") == Key("oslo"));
  CHECK(text("  Oslo.  ") == Key("oslo"));
  CHECK(text("OSLO...") == Key("oslo"));
  CHECK(text("New \t\n York") == Key("new york"));
  CHECK(text("U.S. of A.") == Key("u.s. of a"));
  CHECK(text("...and .5") == Key("...and .5"));
  CHECK(text("a . ") == Key("a"));
  CHECK(text("a . b") == Key("a . b"));
  CHECK(text("\u00C4rger") == Key("\u00E4rger"));
  CHECK(text("A\u0308rger") == Key("\u00E4rger"));           // form C
  CHECK(text("\u00E9\u3000b\u00A0c") == Key("\u00E9 b c"));  // wide and no-break spaces
  CHECK(text("\u7B54\u6848\u3002") == Key("\u7B54\u6848"));
  CHECK(text("\u200Bx\uFEFF") == Key("x"));
  CHECK(text("\u200F\u05D0 \u202B.\u202C") == Key("\u05D0"));  // directions are no content
  CHECK(text("\u03A3") == Key("\u03C3"));
}

TEST_CASE("a text key is its own key") {
  const auto text = keys::text();
  for (const std::string answer : {"Oslo.", "\u0130", "A\u0308", "\u1E9E", "\u03A3\u03C2", "a  b",
                                   "\xFF", "\xC3", "\u212B", "\u01C4", "x \u0301", ". a"}) {
    CAPTURE(answer);
    const Key key = text(answer);
    REQUIRE(key);
    CHECK(text(*key) == key);
  }
}

TEST_CASE("nothing is no key") {
  for (const std::string answer : {"", " ", ".", " . . ", "\u3002", "\u200B"}) {
    CAPTURE(answer);
    CHECK(keys::text()(answer) == std::nullopt);
    CHECK(keys::number_or_text()(answer) == std::nullopt);
  }
}

TEST_CASE("damaged text has a key, and long text in linear time") {
  CHECK(keys::text()("\xFFok") == Key("\uFFFDok"));
  CHECK(keys::text()("ok\xC3") == Key("ok\uFFFD"));
  CHECK(keys::text()(std::string(300'000, '.') + "x").value().size() == 300'001);
  std::string marks = "a";
  for (int i = 0; i < 50'000; ++i) marks += "\u0301\u0323";
  CHECK(keys::text()(marks));
}

TEST_CASE("numbers are numbers by default, everything else is text") {
  const auto key = keys::number_or_text();
  CHECK(key("$1,000.00") == Key("1000"));
  CHECK(key("1000 dollars") == Key("1000 dollars"));
  CHECK(key("1.2.3") == Key("1.2.3"));
  CHECK(key("0.50") == key("1/2"));
  CHECK(key("-0") == key("0"));
  CHECK(key("1,234\u3002") == key("1234"));
  CHECK(key("\u200F-5\u200E") == key("-5"));
  CHECK(key("1e400") == Key("1e400"));  // too long for a fraction, and an answer all the same
  CHECK(key("1/0") == Key("1/0"));
  CHECK(keys::number()("Oslo") == std::nullopt);
  CHECK(keys::number()("2/4") == Key("1/2"));
  CHECK(keys::letter()("(b)") == Key("B"));
  CHECK(keys::letter()("Oslo") == std::nullopt);
}
