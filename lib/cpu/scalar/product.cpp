// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "cpu/scalar/kernels.h"

// One output at a time, ascending along K. The quantised ones fuse where the contract of
// quantized_rows.h says so, so that they are what every path gives, bit for bit.

namespace incipit::cpu::scalar {
namespace {

using tensor::DType;

template <class Block>
Block read_block(const std::byte* row, std::size_t index) {
  Block block;
  std::memcpy(&block, row + index * sizeof(Block), sizeof(Block));
  return block;
}

/// Input k of a block, in units of the low digit, and such a unit.
int integer_of(const RowBlock& x, std::size_t k) { return (x.high[k] << kDigitBits) + x.low[k]; }
float unit_of(const RowBlock& x) { return x.d * kLowDigit; }

float output_q8_0(const std::byte* row, const RowBlock* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t b = 0; b < columns / kBlock; ++b) {
    const auto w = read_block<tensor::BlockQ8_0>(row, b);
    int dot = 0;
    for (std::size_t k = 0; k < kBlock; ++k) dot += w.q[k] * integer_of(x[b], k);
    out = std::fma(tensor::f16_to_f32(w.d) * unit_of(x[b]), static_cast<float>(dot), out);
  }
  return out;
}

int dot_nibbles(const std::uint8_t* w, const RowBlock& x) {
  int dot = 0;
  for (std::size_t k = 0; k < 16; ++k) {
    dot += (w[k] & 15) * integer_of(x, k) + (w[k] >> 4) * integer_of(x, 16 + k);
  }
  return dot;
}

float output_q4_0(const std::byte* row, const RowBlock* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t b = 0; b < columns / kBlock; ++b) {
    const auto w = read_block<tensor::BlockQ4_0>(row, b);
    const int sum = -((x[b].minus_high << kDigitBits) + x[b].minus_low);
    const int dot = dot_nibbles(w.q, x[b]) - 8 * sum;
    out = std::fma(tensor::f16_to_f32(w.d) * unit_of(x[b]), static_cast<float>(dot), out);
  }
  return out;
}

float output_q4_1(const std::byte* row, const RowBlock* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t b = 0; b < columns / kBlock; ++b) {
    const auto w = read_block<tensor::BlockQ4_1>(row, b);
    const int dot = dot_nibbles(w.q, x[b]);
    out = std::fma(tensor::f16_to_f32(w.d) * unit_of(x[b]), static_cast<float>(dot), out);
    out = std::fma(tensor::f16_to_f32(w.m), x[b].s, out);
  }
  return out;
}

float output_f32(const std::byte* row, const float* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t k = 0; k < columns; ++k) out = read_block<float>(row, k) * x[k] + out;
  return out;
}

template <float (*ToFloat)(std::uint16_t)>
float output_16(const std::byte* row, const float* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t k = 0; k < columns; ++k) {
    out = ToFloat(read_block<std::uint16_t>(row, k)) * x[k] + out;
  }
  return out;
}

float output(DType type, const std::byte* weights, const float* x, const RowBlock* quantized,
             std::size_t columns) {
  switch (type) {
    case DType::kF32:
      return output_f32(weights, x, columns);
    case DType::kF16:
      return output_16<tensor::f16_to_f32>(weights, x, columns);
    case DType::kBF16:
      return output_16<tensor::bf16_to_f32>(weights, x, columns);
    case DType::kQ8_0:
      return output_q8_0(weights, quantized, columns);
    case DType::kQ4_0:
      return output_q4_0(weights, quantized, columns);
    case DType::kQ4_1:
      return output_q4_1(weights, quantized, columns);
  }
  return 0.0f;
}

}  // namespace

void product(const ProductPart& part) {
  const PackedWeight& weight = *part.weight;
  const std::size_t columns = weight.columns();
  for (std::size_t n = part.panel_begin; n < part.panel_end; ++n) {  // a panel is an output
    for (std::size_t row = 0; row < part.x.rows; ++row) {
      const RowBlock* const quantized =
          part.quantized == nullptr ? nullptr : part.quantized + row * (columns / kBlock);
      const float sum = output(weight.type(), weight.panel(n), part.x.row(row), quantized, columns);
      part.out.row(row)[n] = part.bias == nullptr ? sum : sum + part.bias[n];
    }
  }
}

}  // namespace incipit::cpu::scalar
