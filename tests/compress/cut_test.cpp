// SPDX-License-Identifier: Apache-2.0
#include "compress/cut.h"

#include <string>

#include "support/catch.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

std::string cut(std::string_view text, std::size_t bytes) {
  Markers markers("0123456789abcdef");
  return cut_middle(text, bytes, markers);
}

std::string repeated(std::string_view part, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += part;
  return text;
}

TEST_CASE("the first marker names the handle, and only that") {
  Markers markers("0123456789abcdef");
  CHECK(!markers.used());
  CHECK(markers.next(1, "rows") == "[... 1 rows left out; restore 0123456789abcdef ...]");
  CHECK(markers.used());
  CHECK(markers.next(12, "items") == "[... 12 items left out ...]");
}

TEST_CASE("what is no longer than a marker is not cut") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, 16 + Markers::kBytes}) {
    CHECK(cut(std::string(size, 'x'), 16) == std::string(size, 'x'));
  }
  CHECK(cut(std::string(17 + Markers::kBytes, 'x'), 16) ==
        std::string(11, 'x') + " [... 65 bytes left out; restore 0123456789abcdef ...] " +
            std::string(5, 'x'));
}

TEST_CASE("little room is for the front") {
  for (std::size_t bytes = 0; bytes < 4; ++bytes) {
    const std::string shorter = cut(std::string(500, 'x'), bytes);
    CHECK(shorter.size() < 70);
    CHECK(shorter.find(std::to_string(500 - bytes) + " bytes left out") != std::string::npos);
  }
}

TEST_CASE("no character, grapheme or escape is cut") {
  for (const std::string_view unit :
       {"é", "中", "😀", "e\u0301", "\r\n", "👩‍👩‍👧", "\\n", "\\\""}) {
    for (std::size_t bytes = 1; bytes < 60; ++bytes) {
      const std::string shorter = cut(repeated(unit, 200), bytes);
      CHECK(text::valid_front(shorter) == shorter.size());
      const std::size_t begin = shorter.find(" [... "), end = shorter.find("...] ") + 5;
      REQUIRE(end < shorter.size() + 1);
      CHECK(shorter.substr(0, begin) == repeated(unit, begin / unit.size()));
      CHECK(shorter.substr(end) == repeated(unit, (shorter.size() - end) / unit.size()));
    }
  }
}

TEST_CASE("a grapheme that is too long is left out as a whole") {
  const std::string endless = std::string("e").append(repeated("\u0301", 1000));
  CHECK(cut(std::string("abc ").append(endless), 30) ==
        "abc  [... 2001 bytes left out; restore 0123456789abcdef ...] ");
  CHECK(cut(endless + "abc", 30) == " [... 2001 bytes left out; restore 0123456789abcdef ...] abc");
}

TEST_CASE("cuts at a space where one is near") {
  const std::string shorter = cut(repeated("seven77 ", 100), 60);
  CHECK(shorter.substr(0, 41) == "seven77 seven77 seven77 seven77 seven77  ");
  CHECK(shorter.substr(shorter.size() - 17) == " seven77 seven77 ");
}

TEST_CASE("bytes that are no UTF-8 are cut like characters") {
  const std::string shorter = cut(std::string(500, '\xFF'), 30);
  CHECK(shorter.substr(0, 20) == std::string(20, '\xFF'));
  CHECK(shorter.substr(shorter.size() - 10) == std::string(10, '\xFF'));
}

}  // namespace
}  // namespace incipit::compress
