// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_noise.h"

#include <array>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/philox.h"
#include "tensor/dtype.h"

namespace incipit::engine {
namespace {

// Sets these numbers apart from those that choose tokens, which have a 0 here.
constexpr std::uint32_t kStream = 0x6b766e6f;

/// About normal, of variance 1: four uniform numbers of 16 bits, so that no libm is needed.
float normal(std::uint32_t a, std::uint32_t b) noexcept {
  const std::int32_t sum = static_cast<std::int32_t>((a & 0xffff) + (a >> 16)) +
                           static_cast<std::int32_t>((b & 0xffff) + (b >> 16)) - 2 * 0xffff;
  constexpr float kSquareRootOf3 = 1.7320508f;
  return static_cast<float>(sum) * (kSquareRootOf3 / 65536.0f);
}

/// Value number `at` of the sequence comes by way of `Load` and `Store`.
template <class Bits, class Load, class Store>
void add_noise_to(std::span<std::byte> block, std::uint64_t first, const NoiseSource& source,
                  Load&& load, Store&& store) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const std::array<std::uint32_t, 2> key = {low(source.seed), high(source.seed)};
  // A pair of values takes one block of random bits; blocks hold whole pairs.
  for (std::size_t at = 0; at < block.size(); at += 2 * sizeof(Bits)) {
    const std::uint64_t pair = (first + at / sizeof(Bits)) / 2;
    const auto random = base::philox4x32(
        {low(pair), kStream ^ high(pair), low(source.sample), high(source.sample)}, key);
    for (std::size_t i = 0; i < 2; ++i) {
      Bits bits;
      std::byte* const place = block.data() + at + i * sizeof(Bits);
      std::memcpy(&bits, place, sizeof(Bits));
      const float factor = 1.0f + source.deviation * normal(random[2 * i], random[2 * i + 1]);
      bits = store(load(bits) * factor);
      std::memcpy(place, &bits, sizeof(Bits));
    }
  }
}

}  // namespace

void add_noise(device::Device& device, const device::KvPoolView& pool,
               std::span<const device::BlockId> blocks, const NoiseSource& source) {
  const device::KvFormat type = pool.layout.shape().type;
  INCIPIT_CHECK(type != device::KvFormat::kInt8);
  std::vector<std::byte> block(pool.layout.block_bytes());
  const std::size_t value_bytes = type == device::KvFormat::kF32 ? 4 : 2;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    device.download(pool.block(blocks[i]), block);
    const std::uint64_t first = i * (block.size() / value_bytes);
    const auto same = [](float value) { return value; };
    if (type == device::KvFormat::kF32) {
      add_noise_to<float>(block, first, source, same, same);
    } else if (type == device::KvFormat::kF16) {
      add_noise_to<std::uint16_t>(block, first, source, tensor::f16_to_f32, tensor::f32_to_f16);
    } else {
      add_noise_to<std::uint16_t>(block, first, source, tensor::bf16_to_f32, tensor::f32_to_bf16);
    }
    device.upload(block, pool.block(blocks[i]));
  }
}

}  // namespace incipit::engine
