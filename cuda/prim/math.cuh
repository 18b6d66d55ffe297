// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_MATH_CUH_
#define INCIPIT_CUDA_PRIM_MATH_CUH_

#include <cmath>

#include "cuda/prim/types.cuh"

// Functions that give the same bits on every GPU and in the emulator: plain IEEE operations,
// compiled with --fmad=false and -ffp-contract=off. exp2_approx is the exception and says so.

namespace incipit::cuda::prim {

/// a * b + c, rounded once.
INCIPIT_DEVICE float fma_rn(float a, float b, float c) {
#if INCIPIT_CUDA_EMULATED
  return std::fma(a, b, c);
#else
  return __fmaf_rn(a, b, c);
#endif
}

INCIPIT_DEVICE float sqrt_rn(float x) {
#if INCIPIT_CUDA_EMULATED
  return std::sqrt(x);
#else
  return __fsqrt_rn(x);
#endif
}

INCIPIT_DEVICE float divide_rn(float a, float b) {
#if INCIPIT_CUDA_EMULATED
  return a / b;
#else
  return __fdiv_rn(a, b);
#endif
}

/// The larger one; NaN counts as nothing.
INCIPIT_DEVICE float max_f32(float a, float b) {
#if INCIPIT_CUDA_EMULATED
  return a > b || b != b ? a : b;
#else
  return fmaxf(a, b);
#endif
}

INCIPIT_DEVICE float infinity() { return bit_cast<float>(0x7f800000u); }

/// The nearest whole number, ties to even, for |x| < 2^22.
INCIPIT_DEVICE float round_to_even(float x) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23 leaves no bits for the fraction
  return (x + kShift) - kShift;
}

/// e^x to about 1e-7 relative; exactly 0 below -87, exactly 1 at 0, e^88 above 88. NaN stays NaN.
/// 2^n times a polynomial (Cephes expf), as the CPU has it, but with fused steps.
INCIPIT_DEVICE float exp_f32(float x) {
  const float bounded = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
  const float n = round_to_even(bounded * 1.44269504f);
  const float r =
      fma_rn(n, 2.12194440e-4f, fma_rn(n, -0.693359375f, bounded));  // ln 2 in two parts
  float p = 1.9875691500e-4f;
  p = fma_rn(p, r, 1.3981999507e-3f);
  p = fma_rn(p, r, 8.3334519073e-3f);
  p = fma_rn(p, r, 4.1665795894e-2f);
  p = fma_rn(p, r, 1.6666665459e-1f);
  p = fma_rn(p, r, 5.0000001201e-1f);
  p = fma_rn(p, r * r, r + 1.0f);
  if (x != x) return x;
  if (x < -87.0f) return 0.0f;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127);
  return p * bit_cast<float>(exponent << 23);
}

/// tanh_f32(x) to about 3e-7 absolute.
INCIPIT_DEVICE float tanh_f32(float x) {
  const float magnitude = x < 0.0f ? -x : x;
  const float t = 1.0f - divide_rn(2.0f, exp_f32(magnitude + magnitude) + 1.0f);
  return x < 0.0f ? -t : t;
}

/// The upper half of a product.
INCIPIT_DEVICE std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if INCIPIT_CUDA_EMULATED
  __extension__ using Product = unsigned __int128;
  return static_cast<std::uint64_t>((Product{a} * b) >> 64);
#else
  return __umul64hi(a, b);
#endif
}

/// 2^x to about 2e-7 relative, 0 below -126: one instruction, whose last bits are the GPU's own.
INCIPIT_DEVICE float exp2_approx(float x) {
#if INCIPIT_CUDA_EMULATED
  return x < -126.0f ? 0.0f : std::exp2(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_MATH_CUH_
