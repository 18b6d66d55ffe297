// SPDX-License-Identifier: Apache-2.0
#include "text/ascii.h"

#include <string>

#include "support/catch.h"

namespace incipit::text {
namespace {

/// All bytes that `is` is true of.
template <class Predicate>
std::string all(Predicate is) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) {
    if (is(static_cast<char>(byte))) bytes += static_cast<char>(byte);
  }
  return bytes;
}

const std::string_view kUpper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", kLower = "abcdefghijklmnopqrstuvwxyz";

TEST_CASE("bytes have the classes of ASCII, and none beyond it") {
  CHECK(all(is_digit) == "0123456789");
  CHECK(all(is_upper) == kUpper);
  CHECK(all(is_lower) == kLower);
  CHECK(all(is_letter) == std::string(kUpper).append(kLower));
  CHECK(all(is_word) == std::string("0123456789").append(kUpper).append("_").append(kLower));
  CHECK(all(is_hex_digit) == "0123456789ABCDEFabcdef");
  CHECK(all(is_blank) == "\t ");
  CHECK(all(is_space) == "\t\n\v\f\r ");
  CHECK(all(is_ascii).size() == 128);
}

TEST_CASE("only letters change their case") {
  CHECK(all([](char c) { return to_lower(c) != c; }) == kUpper);
  CHECK(all([](char c) { return to_upper(c) != c; }) == kLower);
  for (std::size_t i = 0; i < kUpper.size(); ++i) {
    CHECK(to_lower(kUpper[i]) == kLower[i]);
    CHECK(to_upper(kLower[i]) == kUpper[i]);
  }
}

TEST_CASE("texts lose what is dropped at their ends alone") {
  CHECK(trimmed("").empty());
  CHECK(trimmed(" \n").empty());
  CHECK(trimmed(" a b\r\n") == "a b");
  CHECK(trimmed("01a1", is_digit) == "a");
}

TEST_CASE("a line ends behind its line feed, or with the text") {
  CHECK(line_end("", 0) == 0);
  CHECK(line_end("ab", 1) == 2);
  CHECK(line_end("a\nb\n", 0) == 2);
  CHECK(line_end("a\nb\n", 2) == 4);
  CHECK(line_end("a\n", 2) == 2);
}

}  // namespace
}  // namespace incipit::text
