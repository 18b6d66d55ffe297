// SPDX-License-Identifier: Apache-2.0
#include "tensor/quantized_blocks.h"

#include <cstring>

#include "base/check.h"

namespace incipit::tensor {
namespace {

// Four codes at a time: bits of four bytes in a word.
constexpr std::uint32_t kOnes = 0x01010101;

std::uint32_t load_word(const std::uint8_t* bytes) noexcept {
  std::uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

/// 16 bytes' low nibbles, then their high ones.
void read_nibbles(const std::uint8_t (&pairs)[16], std::uint8_t (&q)[kRun]) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    q[j] = pairs[j] & 15;
    q[16 + j] = pairs[j] >> 4;
  }
}

/// The low (or high) nibbles of 32 bytes.
void read_half(const std::uint8_t* pairs, bool high, std::uint8_t (&q)[kRun]) noexcept {
  for (std::size_t j = 0; j < kRun; ++j) {
    q[j] = static_cast<std::uint8_t>((pairs[j] >> (high ? 4 : 0)) & 15);
  }
}

/// Puts on top of codes of four bits what word_of(j) has for codes j to j + 3.
template <class WordOf>
void add_high_bits(std::uint8_t (&q)[kRun], const WordOf& word_of) noexcept {
  for (std::size_t j = 0; j < kRun; j += 4) {
    const std::uint32_t word = load_word(q + j) | (word_of(j) << 4);
    std::memcpy(q + j, &word, sizeof(word));
  }
}

void add_fifth_bits(const std::uint8_t (&high)[4], std::uint8_t (&q)[kRun]) noexcept {
  add_high_bits(q, [&](std::size_t j) -> std::uint32_t {
    const std::uint32_t four = (high[j / 8] >> (j % 8)) & 15;
    return four * 0x00204081 & kOnes;  // bit i to byte i
  });
}

Codes codes_of(const BlockQ8_0& block, std::size_t) noexcept {
  Codes codes = {};
  codes.d = block.d;
  for (std::size_t j = 0; j < kRun; ++j) codes.q[j] = static_cast<std::uint8_t>(block.q[j] + 128);
  return codes;
}

Codes codes_of(const BlockQ4_0& block, std::size_t) noexcept {
  Codes codes = {};
  codes.d = block.d;
  read_nibbles(block.q, codes.q);
  return codes;
}

Codes codes_of(const BlockQ4_1& block, std::size_t) noexcept {
  Codes codes = {};
  codes.d = block.d;
  codes.m = block.m;
  read_nibbles(block.q, codes.q);
  return codes;
}

Codes codes_of(const BlockQ5_0& block, std::size_t) noexcept {
  Codes codes = {};
  codes.d = block.d;
  read_nibbles(block.q, codes.q);
  add_fifth_bits(block.high, codes.q);
  return codes;
}

Codes codes_of(const BlockQ5_1& block, std::size_t) noexcept {
  Codes codes = {};
  codes.d = block.d;
  codes.m = block.m;
  read_nibbles(block.q, codes.q);
  add_fifth_bits(block.high, codes.q);
  return codes;
}

// What Q4_K and Q5_K have in common: the numbers and the low four bits.
template <class Block>
Codes codes_with_minimum(const Block& block, std::size_t run) noexcept {
  Codes codes = {};
  codes.d = block.d;
  codes.m = block.m;
  const auto& factors = block.factors;
  int scale = factors[run % 4], minimum = factors[4 + run % 4];
  if (run >= 4) {
    const int low = factors[4 + run];
    scale = (low & 15) | (scale >> 6 << 4);
    minimum = (low >> 4) | (minimum >> 6 << 4);
  }
  codes.scale_factor[0] = codes.scale_factor[1] = static_cast<std::int8_t>(scale & 63);
  codes.minimum_factor = static_cast<std::uint8_t>(minimum & 63);
  read_half(block.q + run / 2 * kRun, run % 2 != 0, codes.q);
  return codes;
}

Codes codes_of(const BlockQ4_K& block, std::size_t run) noexcept {
  return codes_with_minimum(block, run);
}

Codes codes_of(const BlockQ5_K& block, std::size_t run) noexcept {
  Codes codes = codes_with_minimum(block, run);
  add_high_bits(codes.q, [&](std::size_t j) { return load_word(block.high + j) >> run & kOnes; });
  return codes;
}

Codes codes_of(const BlockQ6_K& block, std::size_t run) noexcept {
  Codes codes = {};
  codes.d = block.d;
  codes.scale_factor[0] = block.factors[2 * run];
  codes.scale_factor[1] = block.factors[2 * run + 1];
  const std::size_t half = run / 4, part = run % 4;
  read_half(block.q + half * 64 + part % 2 * kRun, part >= 2, codes.q);
  add_high_bits(codes.q, [&](std::size_t j) {
    return load_word(block.high + half * kRun + j) >> (2 * part) & 3 * kOnes;
  });
  return codes;
}

template <class Block>
Codes read_from(const std::byte* row, std::size_t index, std::size_t block_runs = 1) noexcept {
  Block block;
  std::memcpy(&block, row + index / block_runs * sizeof(Block), sizeof(Block));
  return codes_of(block, index % block_runs);
}

}  // namespace

Codes read_codes(DType type, const std::byte* row, std::size_t index) {
  switch (type) {
    case DType::kQ8_0:
      return read_from<BlockQ8_0>(row, index);
    case DType::kQ4_0:
      return read_from<BlockQ4_0>(row, index);
    case DType::kQ4_1:
      return read_from<BlockQ4_1>(row, index);
    case DType::kQ5_0:
      return read_from<BlockQ5_0>(row, index);
    case DType::kQ5_1:
      return read_from<BlockQ5_1>(row, index);
    case DType::kQ4_K:
      return read_from<BlockQ4_K>(row, index, 8);
    case DType::kQ5_K:
      return read_from<BlockQ5_K>(row, index, 8);
    case DType::kQ6_K:
      return read_from<BlockQ6_K>(row, index, 8);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  base::throw_error(ErrorCode::kInternal, "read_codes: this element format has no codes");
}

void expand(DType type, const Codes& codes, std::span<float, kRun> out) noexcept {
  const int offset = code_offset(type);
  const float scales[2] = {codes.scale(0), codes.scale(1)};
  for (std::size_t j = 0; j < kRun; ++j) {
    out[j] = scales[j / 16] * static_cast<float>(codes.q[j] - offset);
  }
  if (has_minimum(type)) {
    const float minimum = codes.minimum(type);
    for (float& value : out) value += minimum;
  }
}

}  // namespace incipit::tensor
