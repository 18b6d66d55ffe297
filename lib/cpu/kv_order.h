// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_KV_ORDER_H_
#define INCIPIT_CPU_KV_ORDER_H_

#include <cstddef>

#include "device/kv_layout.h"

// Where the 16 x head_dim values of one head of a block lie: the same on all CPU paths. A value is
// named by its position in the block (0..15) and its dimension.
//
// Scores come out for the 16 positions of a block at once, and outputs for 16 dimensions at once;
// 16-bit types keep the two values that one dot-product lane multiplies side by side.
//
//              K                                  V
// 16-bit       [head_dim / 2][16 positions][2]    [8 position pairs][head_dim][2]
// F32          [head_dim][16 positions]           [16 positions][head_dim]

namespace incipit::cpu {

/// 16-bit types; head_dim is even.
constexpr std::size_t k_index_16(std::size_t position, std::size_t dim) noexcept {
  return (dim / 2) * (2 * device::kBlockTokens) + 2 * position + dim % 2;
}
constexpr std::size_t v_index_16(std::size_t position, std::size_t dim,
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
