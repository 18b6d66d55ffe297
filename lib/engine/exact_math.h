// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_EXACT_MATH_H_
#define INCIPIT_ENGINE_EXACT_MATH_H_

#include <bit>
#include <cstdint>

// exp and log in plain arithmetic: between logits and samples nothing may depend on the version of
// libm. Relative error of the functions in double precision: below 1e-15.

namespace incipit::engine {

/// The value of a polynomial, whose first coefficient is that of the highest power. Not an array of
/// them: a loop inside keeps the compiler from making vectors of the one outside.
template <class Float, class... Floats>
constexpr Float polynomial(Float x, Float first, Floats... rest) noexcept {
  ((first = first * x + rest), ...);
  return first;
}

/// e^x for x in [-700, 700]. Without branches, so that a loop over a vocabulary becomes one of
/// vectors.
inline double bounded_exp(double x) noexcept {
  constexpr double kLn2High = 6.93147180369123816490e-01;  // 33 bits: n * high is exact
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to whole numbers
  const double shifted = x * 1.44269504088896338700 + kRounder;  // n is in its last bits
  const double n = shifted - kRounder;
  const double r = (x - n * kLn2High) - n * kLn2Low;
  const double p =  // Taylor, |r| <= ln(2)/2
      polynomial(r, 1.0 / 87178291200.0, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0,
                 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0,
                 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0);
  const std::uint64_t exponent = (std::bit_cast<std::uint64_t>(shifted) + 1023) << 52;
  return p * std::bit_cast<double>(exponent);
}

/// e^x; 0 below -700. x must not exceed 700.
inline double exact_exp(double x) noexcept { return x > -700.0 ? bounded_exp(x) : 0.0; }

/// e^x for x in [-80, 0] with a relative error below 2e-7 (and what rounding x makes of it).
/// Without branches, too.
inline float relative_weight(float x) noexcept {
  constexpr float kRounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to whole numbers
  const float n = (x * 1.44269504f + kRounder) - kRounder;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;  // ln 2 in two parts
  const float p =                                                // Taylor, |r| <= ln(2)/2
      polynomial(r, 1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f);
  const auto exponent = static_cast<std::uint32_t>((static_cast<std::int32_t>(n) + 127) << 23);
  return p * std::bit_cast<float>(exponent);
}

/// Natural logarithm of a positive normal number.
inline double exact_log(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);  // log m = 2 atanh s, |s| < 0.172
  const double z = s * s;
  double p = 0.0;
  for (int k = 21; k >= 1; k -= 2) p = p * z + 1.0 / k;
  return static_cast<double>(exponent) * 6.93147180559945309417e-01 + 2.0 * s * p;
}

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_EXACT_MATH_H_
