// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_HALF_PAIR_CUH_
#define INCIPIT_CUDA_PRIM_HALF_PAIR_CUH_

#include "cuda/prim/types.cuh"

// Arithmetic on two F16 in one register, each result rounded once to nearest even.

namespace incipit::cuda::prim {

#if INCIPIT_CUDA_EMULATED

/// value + error, where error is far below value's last bit, as F16.
inline std::uint16_t round_half(double value, double error) {
  const auto near = static_cast<float>(value);
  const double excess = static_cast<double>(near) - value;
  if (excess == 0.0 && error == 0.0) return tensor::f32_to_f16(near);
  // Cut off instead, with the last bit set to say so: then the second rounding is the only one.
  auto bits = bit_cast<std::uint32_t>(near);
  const double outwards = near > 0.0f ? 1.0 : -1.0;
  if (excess * outwards > 0.0 || (excess == 0.0 && error * outwards < 0.0)) --bits;
  return tensor::f32_to_f16(bit_cast<float>(bits | 1u));
}

inline std::uint16_t fma_half(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  const auto value = [](std::uint32_t bits) {
    return static_cast<double>(tensor::f16_to_f32(static_cast<std::uint16_t>(bits)));
  };
  const double product = value(a) * value(b), addend = value(c);  // exact
  const double sum = product + addend;
  const double of_addend = sum - product;  // Knuth's TwoSum
  const double error = (product - (sum - of_addend)) + (addend - of_addend);
  return round_half(sum, sum - sum == 0.0 ? error : 0.0);
}

#endif

/// a * b + c
INCIPIT_DEVICE std::uint32_t fma_halves(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if INCIPIT_CUDA_EMULATED
  const std::uint32_t low = fma_half(a & 0xffffu, b & 0xffffu, c & 0xffffu);
  return low | static_cast<std::uint32_t>(fma_half(a >> 16, b >> 16, c >> 16)) << 16;
#else
  return bit_cast<std::uint32_t>(
      __hfma2(bit_cast<__half2>(a), bit_cast<__half2>(b), bit_cast<__half2>(c)));
#endif
}

/// a * b
INCIPIT_DEVICE std::uint32_t multiply_halves(std::uint32_t a, std::uint32_t b) {
#if INCIPIT_CUDA_EMULATED
  return fma_halves(a, b, 0x80008000u);  // minus zero: keeps the sign of the product's zero
#else
  return bit_cast<std::uint32_t>(__hmul2_rn(bit_cast<__half2>(a), bit_cast<__half2>(b)));
#endif
}

/// a - b
INCIPIT_DEVICE std::uint32_t subtract_halves(std::uint32_t a, std::uint32_t b) {
#if INCIPIT_CUDA_EMULATED
  return fma_halves(b, 0xbc00bc00u, a);
#else
  return bit_cast<std::uint32_t>(__hsub2_rn(bit_cast<__half2>(a), bit_cast<__half2>(b)));
#endif
}

/// The same value twice.
INCIPIT_DEVICE std::uint32_t both_halves(F16 value) { return value.bits * 0x10001u; }

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_HALF_PAIR_CUH_
