// SPDX-License-Identifier: Apache-2.0
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {

void rope(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs) {
  const std::size_t half = angles.columns / 2;
  const bool halves = pairs == device::RopePairs::kHalves;
  for (std::size_t row = 0; row < x.rows; ++row) {
    const float* const cosines = angles.row(row);
    const float* const sines = cosines + half;
    for (std::size_t first = 0; first < x.columns; first += head_dim) {
      float* const head = x.row(row) + first;
      for (std::size_t i = 0; i < half; ++i) {
        float& a = halves ? head[i] : head[2 * i];
        float& b = halves ? head[half + i] : head[2 * i + 1];
        const float turned_a = a * cosines[i] - b * sines[i];
        const float turned_b = b * cosines[i] + a * sines[i];
        a = turned_a;
        b = turned_b;
      }
    }
  }
}

}  // namespace incipit::cpu::scalar
