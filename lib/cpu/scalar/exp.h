// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_SCALAR_EXP_H_
#define INCIPIT_CPU_SCALAR_EXP_H_

#include <bit>
#include <cstdint>

namespace incipit::cpu::scalar {

/// Nearest whole number, ties to even, for |x| < 2^22: adding 1.5 * 2^23 leaves no bits for the
/// fraction.
inline float round_to_even(float x) noexcept {
  constexpr float kShift = 12582912.0f;
  return (x + kShift) - kShift;
}

/// e^x to about 1e-7 relative; exactly 0 below -87, exactly 1 at 0, e^88 above 88. NaN stays NaN.
/// With n = x / ln 2 rounded and r = x - n ln 2: 2^n times a polynomial in r (Cephes expf).
inline float exp(float x) noexcept {
  if (x < -87.0f) return 0.0f;
  if (!(x <= 88.0f)) {
    if (x != x) return x;
    x = 88.0f;
  }
  const float n = round_to_even(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127);
  return p * std::bit_cast<float>(exponent << 23);
}

}  // namespace incipit::cpu::scalar

#endif  // INCIPIT_CPU_SCALAR_EXP_H_
