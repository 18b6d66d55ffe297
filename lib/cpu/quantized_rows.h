// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_QUANTIZED_ROWS_H_
#define INCIPIT_CPU_QUANTIZED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

// Activations as 16-bit integers, and the contract of their products with quantised weights: the
// same on every path, to the last bit. (Eight bits move the logits of a small model by 0.2.)
//
// A row is cut into blocks of 32. With top = the largest |x| of the block:
//
//   q = x * (kLargestInteger / top), rounded to nearest even
//   d = top / kLargestInteger;   s = d * (sum of q)
//
// A block whose top is below kTinyActivation counts as zero; one with an infinity or a NaN gets
// d = NaN, so that the damage shows. One output is, block by block along K, with the weight's
// scale d_w, minimum m_w (Q4_1 only) and integers q_w:
//
//   out = fma(d_w * d, float(sum of q_w * q), out);   Q4_1: then out = fma(m_w, s, out)

namespace incipit::cpu {

inline constexpr std::size_t kBlock = 32;
inline constexpr int kLargestInteger = 32767;
inline constexpr float kTinyActivation = 0x1p-100f;
inline constexpr float kLargestActivation = std::numeric_limits<float>::max();
inline constexpr float kDamagedScale = std::numeric_limits<float>::quiet_NaN();

struct alignas(16) RowBlock {
  std::int16_t q[kBlock];
  float d, s;
  // What turns a sum over unsigned weights into one over signed weights: -8 * (sum of q) for
  // q_w + 8 (Q4_0), -128 * (sum of q) for q_w + 128 (Q8_0).
  std::int32_t offset_8, offset_128;
};
static_assert(sizeof(RowBlock) == 80);

/// Rows of a matrix are multiplied in groups of at most `limit` whose sizes differ by one at most.
/// Their blocks lie as [group][block along K][row of the group], one stream for a kernel to read.
struct RowGroups {
  std::size_t rows = 0;
  std::size_t count = 0;

  RowGroups(std::size_t row_count, std::size_t limit) noexcept
      : rows(row_count), count((row_count + limit - 1) / limit) {}
  /// First row of a group; of group `count`: the number of rows.
  std::size_t begin(std::size_t group) const noexcept { return rows * group / count; }
  std::size_t size(std::size_t group) const noexcept { return begin(group + 1) - begin(group); }
};

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_QUANTIZED_ROWS_H_
