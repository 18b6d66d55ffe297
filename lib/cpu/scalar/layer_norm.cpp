// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {

void layer_norm(ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix out) {
  const auto count = static_cast<float>(x.columns);
  for (std::size_t row = 0; row < x.rows; ++row) {
    const float* const in = x.row(row);
    float sum = 0.0f, squares = 0.0f;
    for (std::size_t i = 0; i < x.columns; ++i) sum += in[i];
    const float mean = sum / count;
    for (std::size_t i = 0; i < x.columns; ++i) squares += (in[i] - mean) * (in[i] - mean);
    const float scale = 1.0f / std::sqrt(squares / count + epsilon);
    for (std::size_t i = 0; i < x.columns; ++i) {
      out.row(row)[i] = (in[i] - mean) * scale * weight[i] + bias[i];
    }
  }
}

}  // namespace incipit::cpu::scalar
