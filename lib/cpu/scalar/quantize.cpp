// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "cpu/scalar/exp.h"
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {
namespace {

float sum_of_squares(const float* x, std::size_t columns) {
  constexpr std::size_t kLanes = 64;
  float lanes[kLanes] = {};
  for (std::size_t k = 0; k < columns; ++k) {
    lanes[k % kLanes] = std::fma(x[k], x[k], lanes[k % kLanes]);
  }
  const auto add = [&](std::size_t first, std::size_t second, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) lanes[first + i] += lanes[second + i];
  };
  add(0, 16, 16);
  add(32, 48, 16);
  add(0, 32, 16);
  for (std::size_t half = 8; half > 0; half /= 2) add(0, half, half);
  return lanes[0];
}

RowBlock quantize_block(const float* x, float columns, float threshold) {
  RowBlock block = {};
  float top = 0.0f;
  for (std::size_t k = 0; k < kBlock; ++k) {
    if (!(std::abs(x[k]) <= kLargestActivation)) {
      block.d = block.s = kDamagedScale;
      return block;
    }
    top = std::max(top, std::abs(x[k]));
  }
  if (top < kTinyActivation) return block;

  constexpr auto kLargest = static_cast<float>(kLargestDigit);
  block.fine = top * top * columns > threshold ? 1 : 0;
  const float factor = (block.fine != 0 ? kLargest * (1 << kDigitBits) : kLargest) / top;
  for (std::size_t k = 0; k < kBlock; ++k) {
    const auto q = static_cast<int>(round_to_even(x[k] * factor));
    const int high = block.fine != 0 ? (q + 64) >> kDigitBits : q;
    const int low = block.fine != 0 ? q - (high << kDigitBits) : 0;
    block.high[k] = static_cast<std::int8_t>(high);
    block.low[k] = static_cast<std::int8_t>(low);
    block.minus_high -= high;
    block.minus_low -= low;
    if (k < kBlock / 2) continue;
    block.minus_high_tail -= high;
    block.minus_low_tail -= low;
  }
  block.d = top / kLargest;
  block.s = block.d * kLowDigit *
            static_cast<float>(-((block.minus_high << kDigitBits) + block.minus_low));
  return block;
}

}  // namespace

void quantize_groups(ConstMatrix x, float fine_ratio, std::size_t begin, std::size_t end,
                     RowBlock* out) {
  const std::size_t blocks = x.columns / kBlock;
  const auto columns = static_cast<float>(x.columns);
  for (std::size_t row = begin; row < end; ++row) {  // a group is a row
    const float threshold = fine_ratio * sum_of_squares(x.row(row), x.columns);
    for (std::size_t b = 0; b < blocks; ++b) {
      out[row * blocks + b] = quantize_block(x.row(row) + b * kBlock, columns, threshold);
    }
  }
}

}  // namespace incipit::cpu::scalar
