// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include "support/catch.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

TEST_CASE("white space is that of Unicode") {
  for (const char32_t code : {U'\t', U'\r', U' ', U'\u0085', U'\u00a0', U'\u1680', U'\u2000',
                              U'\u200a', U'\u2028', U'\u3000'}) {
    CHECK(is_white_space(code));
  }
  for (const char32_t code :
       {U'\b', U'\x0e', U'\x1c', U'\u180e', U'\u200b', U'\u2060', U'\ufeff', U'a'}) {
    CHECK_FALSE(is_white_space(code));
  }
}

TEST_CASE("word characters are letters, marks, digits, connectors and joiners") {
  for (const char32_t code : {U'a', U'Z', U'0', U'_', U'\u00e9', U'\u4eba', U'\u0301', U'\u0663',
                              U'\u2163', U'\u203f', U'\u200d', U'\u24b6', U'\U0001F130'}) {
    CHECK(is_word_character(code));
  }
  for (const char32_t code : {U' ', U'-', U'\u00b2', U'\u2460', U'\u3002', U'\U0001F600', U'\0'}) {
    CHECK_FALSE(is_word_character(code));
  }
}

TEST_CASE("marks are of three kinds") {
  CHECK(is_mark(0x301));
  CHECK(is_mark(0x93E));
  CHECK(is_mark(0x20DD));
  CHECK_FALSE(is_mark('a'));
  CHECK_FALSE(is_mark(0x200D));
}

TEST_CASE("white space at an end is measured in bytes") {
  CHECK(white_space_at_front("") == 0);
  CHECK(white_space_at_front("a ") == 0);
  CHECK(white_space_at_front(" \u3000\ta") == 5);
  CHECK(white_space_at_front(" \xe3\x80") == 1);
  CHECK(white_space_at_back("") == 0);
  CHECK(white_space_at_back(" a") == 0);
  CHECK(white_space_at_back("a\t\u3000 ") == 5);
  CHECK(white_space_at_back("\u3000") == 3);
  CHECK(white_space_at_back("a\x80") == 0);
  CHECK(white_space_at_back(" \x80 ") == 1);
}

TEST_CASE("the last character is found from behind") {
  CHECK(last_character("a") == 1);
  CHECK(last_character("a\u00e9") == 2);
  CHECK(last_character("a\u4eba") == 3);
  CHECK(last_character("\U0001F44D") == 4);
  CHECK(last_character("\u4eba\x80") == 1);
  CHECK(last_character("\x80\x80") == 1);
  CHECK(last_character("a\xe4\xba") == 1);
}

}  // namespace
}  // namespace incipit::text
