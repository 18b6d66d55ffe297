// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cpu/scalar/exp.h"
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {

void add(Matrix x, ConstMatrix y) {
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t i = 0; i < x.columns; ++i) x.row(row)[i] += y.row(row)[i];
  }
}

namespace {

float activated(device::Activation activation, float x) {
  switch (activation) {
    case device::Activation::kSilu:
      return x / (1.0f + exp(-x));
    case device::Activation::kGeluTanh: {
      const float u = 0.797884561f * (x + 0.044715f * (x * x * x));
      return x / (1.0f + exp(-2.0f * u));
    }
    case device::Activation::kRelu:
      break;
  }
  return x < 0.0f ? 0.0f : x;
}

}  // namespace

void activate(device::Activation activation, ConstMatrix gate, ConstMatrix up, Matrix out) {
  for (std::size_t row = 0; row < out.rows; ++row) {
    for (std::size_t i = 0; i < out.columns; ++i) {
      const float value = activated(activation, gate.row(row)[i]);
      out.row(row)[i] = up.data == nullptr ? value : value * up.row(row)[i];
    }
  }
}

void soft_cap(Matrix x, float cap) {
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t i = 0; i < x.columns; ++i) {
      const float value = x.row(row)[i];
      const float e = exp(-2.0f * std::abs(value / cap));
      const float size = cap * ((1.0f - e) / (1.0f + e));
      x.row(row)[i] = value < 0.0f ? -size : size;
    }
  }
}

}  // namespace incipit::cpu::scalar
