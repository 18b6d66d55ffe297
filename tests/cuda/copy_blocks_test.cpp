// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/copy_blocks.cuh"

#include "cuda/kernel_test.h"
#include "cuda/sparse_memory.h"

using namespace incipit;
using namespace incipit::testing;

TEST_CASE("copy_blocks copies whole blocks and touches no other") {
  for (const std::int64_t bytes : {16, 48, 4096, 16384, 16400, 40000}) {
    CAPTURE(bytes);
    std::mt19937 random(static_cast<unsigned>(bytes));
    const std::size_t words = static_cast<std::size_t>(bytes) / 4;
    std::vector<std::uint32_t> pool(6 * words);
    for (auto& word : pool) word = static_cast<std::uint32_t>(random());
    const std::vector<device::BlockId> from = {5, 0, 5}, to = {1, 2, 4};
    const auto got = run([&](cuda::Stream stream) {
      DeviceArray<std::uint32_t> memory(pool);
      DeviceArray<device::BlockId> device_from(from), device_to(to);
      cuda::copy_blocks(stream, {.pool = reinterpret_cast<std::byte*>(memory.data()),
                                 .block_bytes = bytes,
                                 .from = device_from.data(),
                                 .to = device_to.data(),
                                 .pairs = 3});
      return memory.read();
    });
    auto wanted = pool;
    for (std::size_t i = 0; i < from.size(); ++i) {
      std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(from[i] * words), words,
                  wanted.begin() + static_cast<std::ptrdiff_t>(to[i] * words));
    }
    CHECK(same_bits(got, wanted));
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("copy_blocks finds blocks beyond 2^32 bytes, and ids beyond 2^16") {
  constexpr std::int64_t kBytes = 64 * 1024;
  constexpr device::BlockId kLast = 90000;
  const SparseMemory memory(kBytes * (kLast + 1));
  REQUIRE(memory.is_there());
  auto* const bytes = memory.as<unsigned char>();
  bytes[kBytes * 3 + 17] = 1;
  bytes[kBytes * kLast + 18] = 2;
  const std::vector<device::BlockId> from = {3, kLast}, to = {kLast - 1, 70000};
  const auto got = run([&](cuda::Stream stream) {
    DeviceArray<device::BlockId> device_from(from), device_to(to);
    cuda::copy_blocks(stream, {.pool = memory.as<std::byte>(),
                               .block_bytes = kBytes,
                               .from = device_from.data(),
                               .to = device_to.data(),
                               .pairs = 2});
    return std::vector<int>{bytes[kBytes * (kLast - 1) + 17], bytes[kBytes * 70000 + 18]};
  });
  CHECK(got == std::vector<int>{1, 2});
}

TEST_CASE("copy_blocks reads and writes each byte once, in whole sectors") {
  const auto counters = count([&](cuda::Stream stream) {
    DeviceArray<std::uint32_t> memory(2 * 8192, 1);
    DeviceArray<device::BlockId> from(1, 0), to(1, 1);
    cuda::copy_blocks(stream, {.pool = reinterpret_cast<std::byte*>(memory.data()),
                               .block_bytes = 32768,
                               .from = from.data(),
                               .to = to.data(),
                               .pairs = 1});
  });
  CHECK(counters.global_store_bytes == 32768);
  CHECK(counters.global_store_sectors == 1024);
  CHECK(counters.global_load_sectors <= 1024 + 2 * 2 * 8);  // and the ids, by 8 warps of 2 blocks
}
#endif
