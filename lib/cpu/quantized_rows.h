// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_QUANTIZED_ROWS_H_
#define INCIPIT_CPU_QUANTIZED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <limits>

// Activations as integers, and the contract of their products with quantised weights: the same on
// every path, to the last bit.
//
// A row is cut into blocks of 32. Most blocks do with 8 bits. One that stands out of its row is
// rounded to 15 bits, in two digits: it weighs most in what the products are off by. With top = the
// largest |x| of the block and squares = the sum of x^2 of the row:
//
//   fine = top^2 * columns > fine_ratio * squares
//   q = x * (127 / top), rounded to nearest even;          high = q, low = 0
//   fine: q = x * (127 * 128 / top), rounded likewise;     128 * high + low = q, |low| <= 64
//   d = top / 127;   s = d / 128 * (sum of 128 * high + low)
//
// squares is added up in 64 lanes, column k in lane k % 64, each square fused with its sum; then
// lanes 16 apart, 32 apart, 8, 4, 2 and 1 apart are added. A block whose top is below
// kTinyActivation counts as zero; one with a value above kLargestActivation, an infinity or a NaN
// gets d = NaN, so that the damage shows.
//
// One output is, block by block along K, with the weight's scale d_w, minimum m_w and integers q_w
// (tensor::Codes: code less offset):
//
//   out = fma(d_w * (d / 128), float(sum of q_w * (128 * high + low)), out)
//   out = fma(m_w, s, out)                                    (types that have a minimum)
//
// Q6_K, which has two scales in a block, does the first step for inputs 0 to 15, then 16 to 31.
//
// Powers of two are exact (the limits above see to that), so a kernel may leave out the low digits
// and the 128s where no row that it works on is fine.

namespace incipit::cpu {

inline constexpr std::size_t kBlock = 32;
inline constexpr int kLargestDigit = 127;
inline constexpr int kDigitBits = 7;
inline constexpr float kLowDigit = 0x1p-7f;  // a unit of a low digit, in those of a high one
inline constexpr float kTinyActivation = 0x1p-80f;
inline constexpr float kLargestActivation = 0x1p100f;
inline constexpr float kDamagedScale = std::numeric_limits<float>::quiet_NaN();

struct RowBlock {
  std::int8_t high[kBlock], low[kBlock];  // [-127, 127] and [-64, 64]
  float d, s;
  // Minus the sums of the digits: what turns sums over q_w + offset into sums over q_w.
  std::int32_t minus_high, minus_low;
  std::int32_t minus_high_tail, minus_low_tail;  // of inputs 16 to 31 alone
  std::uint32_t fine;                            // 1, or 0: low is zero
};
static_assert(sizeof(RowBlock) == 92);

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
