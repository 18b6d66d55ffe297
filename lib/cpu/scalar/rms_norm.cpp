// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {

void rms_norm(ConstMatrix x, const float* weight, float epsilon, Matrix out) {
  for (std::size_t row = 0; row < x.rows; ++row) {
    const float* const in = x.row(row);
    float squares = 0.0f;
    for (std::size_t i = 0; i < x.columns; ++i) squares += in[i] * in[i];
    const float mean = squares / static_cast<float>(x.columns);
    const float scale = 1.0f / std::sqrt(mean + epsilon);
    for (std::size_t i = 0; i < x.columns; ++i) out.row(row)[i] = in[i] * scale * weight[i];
  }
}

}  // namespace incipit::cpu::scalar
