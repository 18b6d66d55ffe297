// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TENSOR_QUANTIZED_BLOCKS_H_
#define INCIPIT_TENSOR_QUANTIZED_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

// GGUF's quantised blocks as they lie in a file, and one form for all of them.

namespace incipit::tensor {

// Blocks of 32. Element j of `q` is the low nibble of q[j] for j < 16, else the high nibble of
// q[j - 16]; a fifth bit is bit j % 8 of high[j / 8].
struct BlockQ8_0 {  // x = d * q
  std::uint16_t d;  // f16
  std::int8_t q[32];
};
struct BlockQ4_0 {  // x = d * (q - 8)
  std::uint16_t d;
  std::uint8_t q[16];
};
struct BlockQ4_1 {  // x = d * q + m
  std::uint16_t d, m;
  std::uint8_t q[16];
};
struct BlockQ5_0 {  // x = d * (q - 16)
  std::uint16_t d;
  std::uint8_t high[4], q[16];
};
struct BlockQ5_1 {  // x = d * q + m
  std::uint16_t d, m;
  std::uint8_t high[4], q[16];
};
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 &&
              sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);

// Super-blocks of 256: eight runs of 32, each with a 6-bit factor of the scale and one of the
// minimum. Elements j of runs 2n and 2n + 1 are the nibbles of q[32n + j].
//
// Factors of runs 0 to 3 are the low 6 bits of factors[run] (scale) and factors[4 + run] (minimum).
// Those of run 4 + i have their low 4 bits in the nibbles of factors[8 + i], and their high 2 bits
// on top of the factors of run i.
struct BlockQ4_K {  // x = d * scale_factor * q - m * minimum_factor
  std::uint16_t d, m;
  std::uint8_t factors[12], q[128];
};
struct BlockQ5_K {  // the same; the fifth bit of element j of a run is bit `run` of high[j]
  std::uint16_t d, m;
  std::uint8_t factors[12], high[32], q[128];
};
// Sixteen factors, one for 16 elements. Each half of a super-block has four runs of 32, the same
// way: elements j of runs 0 and 1 are the low nibbles of q[j] and q[32 + j], those of runs 2 and 3
// the high ones; above them come bits 2r and 2r + 1 of high[j], r being the run.
struct BlockQ6_K {  // x = d * factor * (q - 32)
  std::uint8_t q[128], high[64];
  std::int8_t factors[16];
  std::uint16_t d;
};
static_assert(sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

/// Elements of a run, the most that share one scale and minimum (but for Q6_K).
inline constexpr std::size_t kRun = 32;

/// A run of 32 elements in one form for all quantised types. Element j stands for
///   scale(j / 16) * (q[j] - code_offset(type)), plus minimum(type) where the type has one.
struct Codes {
  std::uint8_t q[kRun];
  std::uint16_t d = 0, m = 0;            // f16
  std::int8_t scale_factor[2] = {1, 1};  // of d, for 16 elements each; they differ in Q6_K only
  std::uint8_t minimum_factor = 1;       // of m

  // Products of an f16 and a factor are exact in f32.
  float scale(std::size_t half) const noexcept {
    return f16_to_f32(d) * static_cast<float>(scale_factor[half]);
  }
  float minimum(DType type) const noexcept;
};

constexpr bool has_minimum(DType type) noexcept {
  return type == DType::kQ4_1 || type == DType::kQ5_1 || type == DType::kQ4_K ||
         type == DType::kQ5_K;
}
/// Whether scales and minima are products of a super-block's numbers and a run's factors.
constexpr bool has_factors(DType type) noexcept {
  return type == DType::kQ4_K || type == DType::kQ5_K || type == DType::kQ6_K;
}
/// What makes codes unsigned.
constexpr int code_offset(DType type) noexcept {
  switch (type) {
    case DType::kQ8_0:
      return 128;
    case DType::kQ4_0:
      return 8;
    case DType::kQ5_0:
      return 16;
    case DType::kQ6_K:
      return 32;
    default:
      return 0;
  }
}
/// Super-blocks hold what is to be subtracted.
inline float Codes::minimum(DType type) const noexcept {
  const float least = f16_to_f32(m) * static_cast<float>(minimum_factor);
  return has_factors(type) ? -least : least;
}

/// Run `index` of a row of a quantised type in a file's form, at any address.
Codes read_codes(DType type, const std::byte* row, std::size_t index);
/// What the codes stand for.
void expand(DType type, const Codes& codes, std::span<float, kRun> out) noexcept;

}  // namespace incipit::tensor

#endif  // INCIPIT_TENSOR_QUANTIZED_BLOCKS_H_
