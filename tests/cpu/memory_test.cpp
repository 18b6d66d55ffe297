// SPDX-License-Identifier: Apache-2.0
#include "cpu/memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>

#include "incipit/error.h"
#include "support/catch.h"

using namespace incipit;

namespace {

bool all_zero(const std::byte* data, std::size_t bytes) {
  return std::all_of(data, data + bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

bool aligned(const std::byte* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

ErrorCode code_of(std::size_t bytes) {
  try {
    cpu::allocate_pages(bytes);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::kInternal;
}

}  // namespace

TEST_CASE("pages are zeroed, aligned and writable to the last byte") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, std::size_t{4097},
                                  std::size_t{2} << 20, (std::size_t{5} << 20) + 3}) {
    const device::Buffer buffer = cpu::allocate_pages(bytes);
    CAPTURE(bytes);
    CHECK(buffer.bytes() == bytes);
    CHECK(aligned(buffer.data(), 64));
    CHECK(all_zero(buffer.data(), bytes));
    std::memset(buffer.data(), 1, bytes);
  }
}

TEST_CASE("no bytes are no memory") { CHECK(cpu::allocate_pages(0).data() == nullptr); }

TEST_CASE("large buffers lie on huge pages and take memory as they are touched") {
  // Eight gigabytes, of which two huge pages are touched.
  const std::size_t bytes = std::size_t{1} << 33;
  const device::Buffer buffer = cpu::allocate_pages(bytes);
  CHECK(aligned(buffer.data(), std::size_t{2} << 20));
  CHECK(buffer.data()[bytes - 1] == std::byte{0});
}

TEST_CASE("memory that no machine has is refused") {
  CHECK(code_of(std::size_t{1} << 62) == ErrorCode::kOutOfMemory);
  CHECK(code_of(std::numeric_limits<std::size_t>::max()) == ErrorCode::kOutOfMemory);
}

TEST_CASE("pieces of an arena follow each other and outlive it") {
  std::optional<cpu::WeightArena> arena(std::in_place);
  const cpu::WeightArena::Piece first = arena->take(100);
  const cpu::WeightArena::Piece second = arena->take(64);
  const cpu::WeightArena::Piece third = arena->take(1);
  CHECK(aligned(first.data, 64));
  CHECK(second.data - first.data == 128);
  CHECK(third.data - second.data == 64);
  arena.reset();
  std::memset(first.data, 1, 100);
  CHECK(all_zero(second.data, 64));
}

TEST_CASE("a piece that a chunk cannot hold gets one of its own") {
  cpu::WeightArena arena;
  const cpu::WeightArena::Piece small = arena.take(1000);
  const cpu::WeightArena::Piece large = arena.take((std::size_t{64} << 20) + 1);
  const cpu::WeightArena::Piece next = arena.take(1000);
  CHECK(small.chunk != large.chunk);
  large.data[std::size_t{64} << 20] = std::byte{1};
  CHECK(all_zero(next.data, 1000));
  CHECK(next.data >= large.chunk->data());
  std::memset(next.data, 1, 1000);
  CHECK_THROWS_AS(arena.take(std::size_t{1} << 62), Error);
  CHECK(all_zero(arena.take(1000).data, 1000));  // still usable
}
