// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <limits>
#include <set>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::base {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

ErrorCode code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no Error was thrown");
  return {};
}

std::string u64(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

TEST_CASE("arithmetic on file integers refuses to wrap") {
  CHECK(checked_add(kMax - 1, 1, "x") == kMax);
  CHECK(checked_mul(kMax / 3, 3, "x") == kMax);
  CHECK(checked_mul(0, kMax, "x") == 0);
  CHECK(code_of([] { checked_add(kMax, 1, "x"); }) == ErrorCode::kModelUnreadable);
  CHECK(code_of([] { checked_mul(kMax / 2 + 1, 2, "x"); }) == ErrorCode::kModelUnreadable);
  CHECK_THROWS_WITH(checked_mul(kMax, kMax, "tensor 7"), Catch::Contains("tensor 7"));
}

TEST_CASE("a reader reads front to back") {
  const std::string bytes = std::string("\x01\x02\x03\x04", 4) + u64(3) + "abcrest";
  ByteReader reader(as_bytes(bytes), "file");
  CHECK(reader.read<std::uint16_t>() == 0x0201);
  CHECK(reader.read<std::uint16_t>() == 0x0403);
  CHECK(reader.position() == 4);
  CHECK(reader.read_string(3) == "abc");
  CHECK(reader.remaining() == 4);
  CHECK(reader.take(4).size() == 4);
  CHECK(reader.take(0).empty());
  CHECK(reader.remaining() == 0);
  CHECK_THROWS_AS(reader.read<char>(), Error);
}

TEST_CASE("a read past the end says what and where, and moves nothing") {
  ByteReader reader(as_bytes("abc"), "model.gguf");
  reader.take(1);
  CHECK_THROWS_WITH(reader.read<std::uint32_t>(),
                    Catch::Contains("model.gguf") && Catch::Contains("byte 1"));
  CHECK(code_of([&] { reader.take(kMax); }) == ErrorCode::kModelUnreadable);
  CHECK(reader.position() == 1);
  ByteReader empty({}, "nothing");
  CHECK(empty.remaining() == 0);
  CHECK_THROWS_AS(empty.take(1), Error);
}

TEST_CASE("a string may not be longer than its cap or the file") {
  const std::string four = u64(4) + "abcd";
  CHECK(ByteReader(as_bytes(four), "f").read_string(4) == "abcd");
  CHECK_THROWS_AS(ByteReader(as_bytes(four), "f").read_string(3), Error);
  const std::string liar = u64(kMax) + "abcd";
  CHECK_THROWS_AS(ByteReader(as_bytes(liar), "f").read_string(kMax), Error);
  CHECK_THROWS_AS(ByteReader(as_bytes("1234567"), "f").read_string(8), Error);
}

TEST_CASE("different field sequences give different bytes") {
  using W = FieldWriter;
  const std::set<std::string> all = {
      W().str(),
      W().add("a", "").str(),
      W().add("", "a").str(),
      W().add("a", "bc").str(),
      W().add("ab", "c").str(),
      W().add("a", "b").add("c", "d").str(),
      W().add("a", "bcd").str(),
      W().add("a", std::uint64_t{1}).str(),
      W().add("a", std::uint64_t{256}).str(),
      W().add("a", u64(1)).str(),
      W().add("a", as_bytes(u64(1))).str(),
      W().add("a", std::uint64_t{1}).add("a", std::uint64_t{1}).str(),
  };
  CHECK(all.size() == 12);
  CHECK(W().add("a", "b").add("n", std::uint64_t{7}).str() ==
        W().add("a", "b").add("n", std::uint64_t{7}).str());
}

}  // namespace
}  // namespace incipit::base
