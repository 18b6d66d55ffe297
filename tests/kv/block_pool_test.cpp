// SPDX-License-Identifier: Apache-2.0
#include "kv/block_pool.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"
#include "support/fake_device.h"
#include "tensor/dtype.h"

namespace incipit::test {
namespace {

using kv::BlockId;
using kv::BlockPool;

device::KvLayout layout(device::KvFormat type) {
  return device::KvLayout({.layers = 2, .kv_heads = 3, .head_dim = 8, .type = type});
}

ErrorCode code_of_pool(FakeDevice& device, const device::KvLayout& shape, std::size_t blocks) {
  try {
    BlockPool(device, shape, blocks, false);
  } catch (const Error& error) {
    return error.code();
  }
  FAIL("no error");
  return ErrorCode::kInternal;
}

TEST_CASE("a pool gives each of its blocks once") {
  FakeDevice device;
  BlockPool pool(device, layout(device::KvFormat::kF32), 5, false);
  CHECK(pool.view().blocks == 5);
  CHECK(pool.view().data != nullptr);
  CHECK(pool.free_blocks() == 5);
  std::set<BlockId> taken;
  for (int i = 0; i < 5; ++i) taken.insert(pool.take());
  CHECK(taken == std::set<BlockId>{0, 1, 2, 3, 4});
  CHECK(pool.free_blocks() == 0);
  CHECK_THROWS_AS(pool.take(), Error);
  pool.check_integrity();
}

TEST_CASE("a pool starts at the front and reuses what was freed last") {
  FakeDevice device;
  BlockPool pool(device, layout(device::KvFormat::kF32), 100, false);
  CHECK(pool.take() == 0);
  CHECK(pool.take() == 1);
  pool.release(0);
  CHECK(pool.take() == 0);
  CHECK(pool.take() == 2);
}

TEST_CASE("a block is free when its last holder lets it go") {
  FakeDevice device;
  BlockPool pool(device, layout(device::KvFormat::kF32), 2, false);
  const BlockId block = pool.take();
  CHECK(pool.holders(block) == 1);
  CHECK(pool.retain(block) == 2);
  CHECK(pool.release(block) == 1);
  CHECK(pool.free_blocks() == 1);
  pool.check_integrity();
  CHECK(pool.release(block) == 0);
  CHECK(pool.free_blocks() == 2);
  pool.check_integrity();
}

TEST_CASE("a free block can be neither held nor freed") {
  FakeDevice device;
  BlockPool pool(device, layout(device::KvFormat::kF32), 2, false);
  CHECK_THROWS_AS(pool.release(0), Error);
  CHECK_THROWS_AS(pool.retain(0), Error);
  const BlockId block = pool.take();
  pool.release(block);
  CHECK_THROWS_AS(pool.release(block), Error);
  CHECK(pool.free_blocks() == 2);
  pool.check_integrity();
}

TEST_CASE("freed blocks are NaN where that is asked for") {
  FakeDevice device;
  using device::KvFormat;
  const auto type = GENERATE(KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kInt8);
  BlockPool pool(device, layout(type), 3, true);
  const std::size_t bytes = pool.view().layout.block_bytes();
  const auto all_nan = [&](BlockId block) {
    const bool scaled = type == KvFormat::kInt8;  // any integer times a NaN is one
    const std::size_t width = scaled ? sizeof(float) : device::value_bytes(type);
    const std::size_t head_bytes = pool.view().layout.head_bytes();
    for (std::size_t i = 0; i < bytes; i += width) {
      if (scaled && i % head_bytes < pool.view().layout.scales_offset()) continue;
      std::uint32_t bits = 0;
      std::memcpy(&bits, pool.view().block(block) + i, width);
      float value = 0;
      if (width == sizeof value) std::memcpy(&value, &bits, sizeof value);
      if (type == KvFormat::kF16) value = tensor::f16_to_f32(static_cast<std::uint16_t>(bits));
      if (type == KvFormat::kBF16) value = tensor::bf16_to_f32(static_cast<std::uint16_t>(bits));
      if (!std::isnan(value)) return false;
    }
    return true;
  };
  CHECK(all_nan(0));  // never written
  CHECK(all_nan(2));
  const BlockId block = pool.take();
  const BlockId neighbour = pool.take();
  std::memset(pool.view().block(block), 0, bytes);
  std::memset(pool.view().block(neighbour), 0, bytes);
  pool.retain(block);
  pool.release(block);
  CHECK_FALSE(all_nan(block));  // still held
  pool.release(block);
  CHECK(all_nan(block));
  CHECK_FALSE(all_nan(neighbour));
}

TEST_CASE("freed blocks stay as they are otherwise") {
  FakeDevice device;
  BlockPool pool(device, layout(device::KvFormat::kF16), 1, false);
  const BlockId block = pool.take();
  std::memset(pool.view().block(block), 42, 16);
  pool.release(block);
  CHECK(std::to_integer<int>(*pool.view().block(block)) == 42);
}

TEST_CASE("a copy is the whole block") {
  FakeDevice device;
  BlockPool pool(device, layout(device::KvFormat::kF16), 3, true);
  const std::size_t bytes = pool.view().layout.block_bytes();
  const BlockId from = pool.take();
  const BlockId to = pool.take();
  for (std::size_t i = 0; i < bytes; ++i) pool.view().block(from)[i] = static_cast<std::byte>(i);
  pool.copy(from, to);
  CHECK(std::memcmp(pool.view().block(from), pool.view().block(to), bytes) == 0);
}

TEST_CASE("a pool of no blocks or of too many is refused") {
  FakeDevice device;
  const device::KvLayout good = layout(device::KvFormat::kF32);
  CHECK(code_of_pool(device, good, 0) == ErrorCode::kInvalidArgument);
  CHECK(code_of_pool(device, good, (std::size_t{1} << 30) + 1) == ErrorCode::kInvalidArgument);
  CHECK(code_of_pool(device, good, std::numeric_limits<std::size_t>::max()) ==
        ErrorCode::kInvalidArgument);
  CHECK(code_of_pool(device, device::KvLayout(), 1) == ErrorCode::kInvalidArgument);
  const device::KvLayout huge({.layers = std::size_t{1} << 20,
                               .kv_heads = std::size_t{1} << 10,
                               .head_dim = 1 << 10,
                               .type = device::KvFormat::kF32});
  CHECK(code_of_pool(device, huge, std::size_t{1} << 25) == ErrorCode::kOutOfMemory);
}

TEST_CASE(
    "a pool that is made ready has written to the blocks that are taken first, and no others") {
  struct Recorder : FakeDevice {
    void upload(base::Bytes from, std::byte* to) override {
      written.push_back(to);
      FakeDevice::upload(from, to);
    }
    std::vector<std::byte*> written;
  };
  Recorder device;
  BlockPool pool(device, layout(device::KvFormat::kF32), 8, false);
  const std::size_t block_bytes = pool.view().layout.block_bytes();
  pool.make_ready(0);
  CHECK(device.written.empty());
  pool.make_ready(3 * block_bytes + block_bytes / 2);
  REQUIRE(device.written.size() == 3);
  for (std::byte* const written : device.written) CHECK(pool.view().block(pool.take()) == written);
  CHECK_THROWS_AS(pool.make_ready(block_bytes), Error);  // somebody has blocks

  // More than there is.
  Recorder small;
  BlockPool two(small, layout(device::KvFormat::kF32), 2, false);
  two.make_ready(100 * block_bytes);
  CHECK(small.written.size() == 2);

  // Poison has been written to all, and stays.
  Recorder other;
  BlockPool poisoned(other, layout(device::KvFormat::kF32), 2, true);
  other.written.clear();
  poisoned.make_ready(100 * block_bytes);
  CHECK(other.written.empty());
  const std::byte* const bytes = poisoned.view().block(poisoned.take());
  CHECK(std::all_of(bytes, bytes + block_bytes, [](std::byte b) { return b == std::byte{0xff}; }));
}

}  // namespace
}  // namespace incipit::test
