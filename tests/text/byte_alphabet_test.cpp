// SPDX-License-Identifier: Apache-2.0
#include "text/byte_alphabet.h"

#include <set>

#include "support/catch.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

TEST_CASE("visible bytes stand for themselves, the others for U+0100 and on") {
  CHECK(from_byte_alphabet("") == "");
  CHECK(from_byte_alphabet("Hello!~") == "Hello!~");
  CHECK(from_byte_alphabet("\u0100") == std::string(1, '\0'));
  CHECK(from_byte_alphabet("\u0120the") == " the");
  CHECK(from_byte_alphabet("\u010a\u010a") == "\n\n");
  CHECK(from_byte_alphabet("\u00e4\u00b8\u0143") == "\xe4\xb8\xad");
  CHECK(from_byte_alphabet("\u0121\u0122\u0142\u0143") == "\x7f\x80\xa0\xad");
}

TEST_CASE("the alphabet has a letter for each byte and no other character") {
  std::set<std::string> bytes;
  for (char32_t code = 0; code < 0x400; ++code) {
    std::string letter;
    append_utf8(letter, code);
    if (const auto byte = from_byte_alphabet(letter)) {
      CHECK(byte->size() == 1);
      bytes.insert(*byte);
    }
  }
  CHECK(bytes.size() == 256);
  for (const char* foreign :
       {" ", "a b", "\n", "\u00a0", "\u00ad", "\u0144", "\u4eba", "\U0001F44D", "\xff", "a\xc3"}) {
    CHECK_FALSE(from_byte_alphabet(foreign).has_value());
  }
}

}  // namespace
}  // namespace incipit::text
