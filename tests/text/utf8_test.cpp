// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <initializer_list>

#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::text {
namespace {

using Kind = Utf8Unit::Kind;

std::string replaced(std::string_view bytes) {
  std::string text;
  if (append_replaced(text, bytes) < bytes.size()) text += kReplacementCharacter;
  return text;
}

TEST_CASE("every scalar value is written and read back, surrogates are refused") {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    std::string bytes;
    append_utf8(bytes, code);
    const Utf8Unit unit = first_unit(bytes + "x");
    if (code >= 0xD800 && code <= 0xDFFF) {
      if (unit.kind != Kind::kInvalid || unit.bytes != 1) FAIL("surrogate " << std::uint32_t{code});
    } else if (unit.kind != Kind::kCharacter || unit.bytes != bytes.size() || unit.code != code) {
      FAIL("character " << std::uint32_t{code});
    }
  }
}

TEST_CASE("the front of a character is incomplete at the end and invalid before anything else") {
  for (const std::string& character :
       {std::string("\u00e9"), std::string("\u4eba"), std::string("\U0001F44D")}) {
    for (std::size_t size = 1; size < character.size(); ++size) {
      const std::string front = character.substr(0, size);
      CHECK(first_unit(front).kind == Kind::kIncomplete);
      CHECK(first_unit(front).bytes == size);
      for (const char* next : {"a", "\xc3", "\xff"}) {
        CHECK(first_unit(front + next).kind == Kind::kInvalid);
        CHECK(first_unit(front + next).bytes == size);
      }
    }
  }
}

TEST_CASE("each maximal invalid part is one replacement character") {
  // Unicode 15, tables 3-8 to 3-11.
  CHECK(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") ==
        repeated(kReplacementCharacter, 8) + "A");
  CHECK(replaced("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") ==
        repeated(kReplacementCharacter, 8) + "A");
  CHECK(replaced("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
        repeated(kReplacementCharacter, 5) + "A" + repeated(kReplacementCharacter, 2) + "B");
  CHECK(replaced("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") ==
        repeated(kReplacementCharacter, 4) + "A");
  CHECK(replaced("a\xE4\xB8") == "a\uFFFD");
  CHECK(replaced("").empty());
}

TEST_CASE("the valid front ends before the first byte of a bad or begun character") {
  CHECK(valid_front("") == 0);
  CHECK(valid_front("\x80") == 0);
  for (const std::size_t ascii : {0u, 1u, 7u, 8u, 9u, 15u, 16u, 17u}) {
    const std::string front(ascii, 'x');
    CHECK(valid_front(front) == ascii);
    CHECK(valid_front(front + "\u00e9") == ascii + 2);
    CHECK(valid_front(front + "\u4eba\xe4\xb8") == ascii + 3);
    CHECK(valid_front(front + "\xff" + front) == ascii);
    CHECK(valid_front(front + std::string(1, '\0') + front) == 2 * ascii + 1);
  }
}

TEST_CASE("replaced text is valid, and valid text stays as it is") {
  for (const std::string& text : corpus()) {
    if (replaced(text) != text) FAIL_CHECK(text);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = replaced(random_bytes(random, 24));
    if (valid_front(text) != text.size()) FAIL_CHECK(i);
  }
}

}  // namespace
}  // namespace incipit::text
