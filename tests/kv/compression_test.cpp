// SPDX-License-Identifier: Apache-2.0
#include "kv/compression.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "sealed_records.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::compress;

/// Numbers as those of KV: two bytes that say nothing, and two that say little.
ByteVector numbers(std::size_t bytes, std::size_t width) {
  ByteVector all = pattern(bytes, 3);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % width >= width / 2) all[i] &= std::byte{3};
  }
  return all;
}

/// None where it does not pay.
std::optional<ByteVector> compressed(ByteVector body, std::size_t width) {
  const auto size = compress(body, width);
  if (!size) return std::nullopt;
  body.resize(*size);
  return body;
}

std::optional<ByteVector> decompressed(const ByteVector& bytes, std::size_t most) {
  const auto planes = kv::decompress(bytes, most);
  if (!planes) return std::nullopt;
  ByteVector body(planes->bytes.bytes().size());
  kv::join(planes->bytes.bytes(), planes->value_bytes, body);
  return body;
}

template <class T>
void put(ByteVector& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

TEST_CASE("what is compressed is smaller by a tenth, and comes back bit for bit") {
  for (const std::size_t width : {1u, 2u, 4u, 8u}) {
    for (const std::size_t bytes : {1000u, 1001u, 1003u, 1007u, 100'000u, 1'000'003u}) {
      const ByteVector body = numbers(bytes, width);
      const auto small = compressed(body, width);
      REQUIRE(small);
      CHECK(small->size() <= bytes - bytes / 10);
      CHECK(decompressed(*small, bytes) == body);
    }
  }
}

TEST_CASE("where compression does not pay, nothing changes") {
  for (const std::size_t width : {1u, 2u, 3u, 4u}) {
    for (const std::size_t bytes : {0u, 1u, 12u, 13u, 14u, 15u, 100u, 99'999u}) {
      const ByteVector body = pattern(bytes, 5);
      ByteVector after = body;
      CHECK_FALSE(compress(after, width));
      CHECK(after == body);
    }
  }
}

TEST_CASE("sorting by the bytes of a number is what makes KV smaller") {
  const ByteVector body = numbers(200'000, 4);
  const auto sorted = compressed(body, 4), unsorted = compressed(body, 1);
  REQUIRE(sorted);
  CHECK(sorted->size() < (unsorted ? unsorted->size() : body.size()));
}

TEST_CASE("damaged compressed bytes give nothing or as many bytes as they promise") {
  const ByteVector body = numbers(3000, 2);
  const auto small = compressed(body, 2);
  REQUIRE(small);
  for (std::size_t size = 0; size < small->size(); ++size) {
    CHECK_FALSE(decompressed({small->begin(), small->begin() + static_cast<long>(size)}, 3000));
  }
  for (std::size_t bit = 0; bit < small->size() * 8; ++bit) {
    ByteVector damaged = *small;
    damaged[bit / 8] ^= std::byte{1} << bit % 8;
    const auto found = decompressed(damaged, 3000);
    if (found && found->size() > 3000) FAIL("bit " << bit);
  }
}

TEST_CASE("nothing becomes larger than is allowed, and no memory is taken for what would") {
  ByteVector body(1 << 20);  // a thousandth of it compressed
  const auto small = compressed(body, 1);
  REQUIRE(small);
  REQUIRE(small->size() < 1000);
  CHECK(decompressed(*small, body.size()) == body);
  CHECK_FALSE(decompressed(*small, body.size() - 1));
  ByteVector lies = *small;
  // More than is there, less than is there, and more than any machine has.
  for (const std::uint64_t claim : {(1ull << 20) + 1, (1ull << 20) - 1, 0ull, 1ull}) {
    put(lies, 0, claim);
    CHECK_FALSE(decompressed(lies, 2 << 20));
  }
  for (const std::uint64_t claim : {1ull << 60, ~0ull}) {
    put(lies, 0, claim);
    CHECK_FALSE(decompressed(lies, 2 << 20));
  }
  lies = *small;
  for (const std::uint32_t width : {0u, 9u, 0xffffffffu}) {
    put(lies, 8, width);
    CHECK_FALSE(decompressed(lies, 2 << 20));
  }
}

}  // namespace
}  // namespace incipit::test
