// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <cstddef>

namespace incipit::model {
namespace {

// Taylor polynomials; on [-pi/4, pi/4] the first term left out is below 1e-16.
double sin_kernel(double r) noexcept {
  const double z = r * r;
  double p = -1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return r + r * z * p;
}

double cos_kernel(double r) noexcept {
  const double z = r * r;
  double p = 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  p = p * z - 0.5;
  return 1.0 + z * p;
}

}  // namespace

SinCos sin_cos(float angle) noexcept {
  // pi/2 in two parts; the first has 33 bits, so that its product with a quadrant number below
  // 2^20 is exact (Cody and Waite).
  constexpr double kHalfPiHigh = 1.57079632673412561417e+00;
  constexpr double kHalfPiLow = 6.07710050650619224932e-11;
  constexpr double kInverse = 6.36619772367581382433e-01;
  const double x = static_cast<double>(angle);
  const auto quadrant = static_cast<std::int64_t>(x * kInverse + 0.5);
  const auto n = static_cast<double>(quadrant);
  const double r = (x - n * kHalfPiHigh) - n * kHalfPiLow;
  const auto s = static_cast<float>(sin_kernel(r));
  const auto c = static_cast<float>(cos_kernel(r));
  switch (quadrant & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

void rope_angles(std::span<const std::uint32_t> positions, std::span<const float> frequencies,
                 tensor::Matrix angles) noexcept {
  const std::size_t half = frequencies.size();
  for (std::size_t i = 0; i < positions.size(); ++i) {
    float* row = angles.row(i);
    const auto position = static_cast<float>(positions[i]);
    for (std::size_t j = 0; j < half; ++j) {
      const SinCos value = sin_cos(position * frequencies[j]);
      row[j] = value.cos;
      row[half + j] = value.sin;
    }
  }
}

}  // namespace incipit::model
