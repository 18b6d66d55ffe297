// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_TYPES_CUH_
#define INCIPIT_CUDA_PRIM_TYPES_CUH_

#include <cstring>

#include "cuda/prim/platform.cuh"
#if INCIPIT_CUDA_EMULATED
#include "tensor/dtype.h"
#else
#include <cuda_fp16.h>
#endif

namespace incipit::cuda {

// 16-bit floats as they lie in memory.
struct F16 {
  std::uint16_t bits;
};
struct BF16 {
  std::uint16_t bits;
};

namespace prim {

template <class T>
constexpr bool kIsBF16 = false;
template <>
constexpr bool kIsBF16<BF16> = true;

/// kCount neighbours that are loaded and stored by one instruction.
template <class T, unsigned kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T values[kCount];

  INCIPIT_DEVICE T& operator[](unsigned i) { return values[i]; }
  INCIPIT_DEVICE const T& operator[](unsigned i) const { return values[i]; }
};
/// As many as the widest access takes: 16 bytes.
template <class T>
constexpr unsigned kPackOf = 16 / sizeof(T);

/// Takes a value: a copy from behind a reference would be one of bytes.
template <class To, class From>
INCIPIT_DEVICE To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

INCIPIT_DEVICE float to_float(float value) { return value; }
INCIPIT_DEVICE float to_float(BF16 value) {
  return bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}
INCIPIT_DEVICE float to_float(F16 value) {
#if INCIPIT_CUDA_EMULATED
  return tensor::f16_to_f32(value.bits);
#else
  return __half2float(__ushort_as_half(value.bits));
#endif
}

/// Rounds to nearest even; NaN stays NaN.
template <class T>
INCIPIT_DEVICE T from_float(float value);
template <>
INCIPIT_DEVICE float from_float<float>(float value) {
  return value;
}
template <>
INCIPIT_DEVICE BF16 from_float<BF16>(float value) {
  const auto bits = bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return {static_cast<std::uint16_t>((nan ? bits | 0x400000u : rounded) >> 16)};
}
template <>
INCIPIT_DEVICE F16 from_float<F16>(float value) {
#if INCIPIT_CUDA_EMULATED
  return {tensor::f32_to_f16(value)};
#else
  return {__half_as_ushort(__float2half_rn(value))};
#endif
}

/// Two 16-bit floats as a register of a matrix fragment has them: `low` in the low half.
template <class T>
INCIPIT_DEVICE std::uint32_t pack_pair(float low, float high) {
#if !INCIPIT_CUDA_EMULATED && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  std::uint32_t pair;
  if constexpr (kIsBF16<T>) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  }
  return pair;
#else
  return from_float<T>(low).bits | static_cast<std::uint32_t>(from_float<T>(high).bits) << 16;
#endif
}

}  // namespace prim
}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_PRIM_TYPES_CUH_
