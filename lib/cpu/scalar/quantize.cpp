// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "cpu/scalar/exp.h"
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {
namespace {

RowBlock quantize_block(const float* x) {
  RowBlock block = {};
  float top = 0.0f;
  for (std::size_t k = 0; k < kBlock; ++k) {
    if (!std::isfinite(x[k])) {
      block.d = block.s = kDamagedScale;
      return block;
    }
    top = std::max(top, std::abs(x[k]));
  }
  if (top < kTinyActivation) return block;

  constexpr auto kLargest = static_cast<float>(kLargestInteger);
  const float inverse = kLargest / top;
  int sum = 0;
  for (std::size_t k = 0; k < kBlock; ++k) {
    block.q[k] = static_cast<std::int16_t>(round_to_even(x[k] * inverse));
    sum += block.q[k];
  }
  block.d = top / kLargest;
  block.s = block.d * static_cast<float>(sum);
  block.offset_8 = -8 * sum;
  block.offset_128 = -128 * sum;
  return block;
}

}  // namespace

void quantize_groups(ConstMatrix x, std::size_t begin, std::size_t end, RowBlock* out) {
  const std::size_t blocks = x.columns / kBlock;
  for (std::size_t row = begin; row < end; ++row) {  // a group is a row
    for (std::size_t b = 0; b < blocks; ++b) {
      out[row * blocks + b] = quantize_block(x.row(row) + b * kBlock);
    }
  }
}

}  // namespace incipit::cpu::scalar
