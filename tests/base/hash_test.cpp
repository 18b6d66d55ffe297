// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <random>

#include "support/catch.h"

namespace incipit::base {
namespace {

std::string hex(const Digest128& digest) {
  std::string out;
  for (const std::byte b : digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[std::to_integer<int>(b) >> 4];
    out += kDigits[std::to_integer<int>(b) & 15];
  }
  return out;
}

// Published values of XXH3 for the empty input and for "abc" (xxhsum -H3 and -H2 print these).
TEST_CASE("hashes are those of XXH3") {
  CHECK(xxh3_64(as_bytes("")) == 0x2D06800538D394C2);
  CHECK(xxh3_64(as_bytes("abc")) == 0x78AF5F94892F3950);
  CHECK(hex(xxh3_128(as_bytes(""))) == "99aa06d3014798d86001c324468d497f");
  CHECK(hex(xxh3_128(as_bytes("abc"))) == "06b05ab6733a618578af5f94892f3950");
}

TEST_CASE("a seed changes the hash") {
  CHECK(xxh3_64(as_bytes("abc"), 1) != xxh3_64(as_bytes("abc")));
  CHECK(xxh3_128(as_bytes("abc"), 1) != xxh3_128(as_bytes("abc")));
}

TEST_CASE("pieces hash like the whole") {
  std::string text(5000, '\0');
  std::minstd_rand random(1);
  for (char& c : text) c = static_cast<char>(random() & 0xFF);
  for (const std::size_t length : {0u, 1u, 16u, 17u, 240u, 241u, 256u, 1024u, 5000u}) {
    const auto whole = std::string_view(text).substr(0, length);
    StreamHash128 stream;
    for (std::size_t begin = 0; begin < length;) {
      const std::size_t piece = std::min<std::size_t>(random() % 300, length - begin);
      stream.update(as_bytes(whole.substr(begin, piece)));
      begin += piece;
    }
    CAPTURE(length);
    CHECK(stream.digest() == xxh3_128(as_bytes(whole)));
    CHECK(stream.digest() == stream.digest());
  }
}

}  // namespace
}  // namespace incipit::base
