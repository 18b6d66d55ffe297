// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "cpu/scalar/kernels.h"

// One output at a time, ascending along K. The quantised ones fuse where the contract of
// quantized_rows.h says so, so that they are what every path gives, bit for bit.

namespace incipit::cpu::scalar {
namespace {

using tensor::DType;

template <class T>
T value_at(const std::byte* row, std::size_t index) {
  T value;
  std::memcpy(&value, row + index * sizeof(T), sizeof(T));
  return value;
}

/// Input k of a block, in units of the low digit, and such a unit.
int integer_of(const RowBlock& x, std::size_t k) { return (x.high[k] << kDigitBits) + x.low[k]; }
float unit_of(const RowBlock& x) { return x.d * kLowDigit; }

/// Adds the inputs from `begin` to `end` of a block.
float add_inputs(float out, DType type, const tensor::Codes& w, const RowBlock& x,
                 std::size_t begin, std::size_t end) {
  int dot = 0;
  for (std::size_t k = begin; k < end; ++k) {
    dot += (w.q[k] - tensor::code_offset(type)) * integer_of(x, k);
  }
  return std::fma(w.scale(begin / 16) * unit_of(x), static_cast<float>(dot), out);
}

float output_quantized(DType type, const std::byte* row, const RowBlock* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t b = 0; b < columns / kBlock; ++b) {
    const tensor::Codes w = tensor::read_codes(type, row, b);
    if (type == DType::kQ6_K) {
      out = add_inputs(out, type, w, x[b], 0, 16);
      out = add_inputs(out, type, w, x[b], 16, kBlock);
    } else {
      out = add_inputs(out, type, w, x[b], 0, kBlock);
    }
    if (tensor::has_minimum(type)) out = std::fma(w.minimum(type), x[b].s, out);
  }
  return out;
}

float output_f32(const std::byte* row, const float* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t k = 0; k < columns; ++k) out = value_at<float>(row, k) * x[k] + out;
  return out;
}

template <float (*ToFloat)(std::uint16_t)>
float output_16(const std::byte* row, const float* x, std::size_t columns) {
  float out = 0.0f;
  for (std::size_t k = 0; k < columns; ++k) {
    out = ToFloat(value_at<std::uint16_t>(row, k)) * x[k] + out;
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
    default:
      return output_quantized(type, weights, quantized, columns);
  }
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
