// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_KV_ORDER_H_
#define INCIPIT_CPU_KV_ORDER_H_

#include <cstddef>
#include <limits>

#include "device/kv_layout.h"

// Where the 16 x head_dim values of one head of a block lie: the same on all CPU paths. A value is
// named by its position in the block (0..15) and its dimension.
//
// Scores come out for the 16 positions of a block at once, and outputs for 16 dimensions at once;
// all but F32 keep the two values that one dot-product lane multiplies side by side.
//
//              K                                  V
// F16, BF16    [head_dim / 2][16 positions][2]    [8 position pairs][head_dim][2]
// int8         the same, and [16] scales          the same, and [16] scales
// F32          [head_dim][16 positions]           [16 positions][head_dim]
//
// int8: with top = the largest |x| of a token's K (or V) in one KV head,
//
//   q = x * (127 / top), rounded to nearest even;   scale = top / 127
//
// A row whose top is below kTinyKv counts as zero; one with an infinity or a NaN gets the
// scale NaN, so that the damage shows. K's scale multiplies the finished product of query and
// integers, V's the key's weight.

namespace incipit::cpu {

inline constexpr int kLargestKvInteger = 127;
inline constexpr float kTinyKv = 0x1p-100f;
inline constexpr float kDamagedKvScale = std::numeric_limits<float>::quiet_NaN();

/// All types but F32; head_dim is even.
constexpr std::size_t k_index_pairs(std::size_t position, std::size_t dim) noexcept {
  return (dim / 2) * (2 * device::kBlockTokens) + 2 * position + dim % 2;
}
constexpr std::size_t v_index_pairs(std::size_t position, std::size_t dim,
                                    std::size_t head_dim) noexcept {
  return (position / 2) * (2 * head_dim) + 2 * dim + position % 2;
}

constexpr std::size_t k_index_f32(std::size_t position, std::size_t dim) noexcept {
  return dim * device::kBlockTokens + position;
}
constexpr std::size_t v_index_f32(std::size_t position, std::size_t dim,
                                  std::size_t head_dim) noexcept {
  return position * head_dim + dim;
}

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_KV_ORDER_H_
