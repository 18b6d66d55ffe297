// SPDX-License-Identifier: Apache-2.0
#include "cpu/scalar/exp.h"
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {

void add(Matrix x, ConstMatrix y) {
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t i = 0; i < x.columns; ++i) x.row(row)[i] += y.row(row)[i];
  }
}

void swiglu(ConstMatrix gate, ConstMatrix up, Matrix out) {
  for (std::size_t row = 0; row < out.rows; ++row) {
    for (std::size_t i = 0; i < out.columns; ++i) {
      const float g = gate.row(row)[i];
      const float silu = g / (1.0f + exp(-g));
      out.row(row)[i] = silu * up.row(row)[i];
    }
  }
}

}  // namespace incipit::cpu::scalar
