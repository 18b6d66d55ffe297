// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_SIXTEEN_BITS_H_
#define INCIPIT_TESTS_SIMT_SIXTEEN_BITS_H_

#include <bit>
#include <cstdint>

namespace incipit::simt {

/// Without branches, so that the compiler takes vectors.
inline float from_f16(std::uint32_t bits) {
  const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
  // 2^112 moves the exponent from one bias to the other, subnormals included.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude | 0x7f800000u;  // infinity and NaN
  const std::uint32_t value =
      (bits & 0x7c00u) == 0x7c00u ? special : std::bit_cast<std::uint32_t>(scaled);
  return std::bit_cast<float>(value | (bits & 0x8000u) << 16);
}

inline float from_bf16(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_SIXTEEN_BITS_H_
