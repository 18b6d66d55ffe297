// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_SIMD_AVX2_H_
#define INCIPIT_CPU_SIMD_AVX2_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/target.h"

// Sixteen floats in two registers; see simd_avx512.h.

namespace incipit::cpu::avx2 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX2)
namespace {

struct F16x {
  __m256 lo, hi;
};

inline F16x load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F16x a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
inline F16x set1(float a) { return {_mm256_set1_ps(a), _mm256_set1_ps(a)}; }
inline F16x zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline F16x add(F16x a, F16x b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline F16x sub(F16x a, F16x b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline F16x mul(F16x a, F16x b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline F16x div(F16x a, F16x b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline F16x fma(F16x a, F16x b, F16x c) {  // a*b + c
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
inline F16x fnma(F16x a, F16x b, F16x c) {  // c - a*b
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
inline F16x fms(F16x a, F16x b, F16x c) {  // a*b - c
  return {_mm256_fmsub_ps(a.lo, b.lo, c.lo), _mm256_fmsub_ps(a.hi, b.hi, c.hi)};
}
inline F16x max(F16x a, F16x b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline F16x min(F16x a, F16x b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline F16x abs(F16x a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
inline F16x round(F16x a) {
  return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline __m256 lane_mask(std::uint32_t mask) {  // all ones in lane i where bit i is set
  const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  const __m256i set = _mm256_and_si256(_mm256_set1_epi32(static_cast<int>(mask)), bit);
  return _mm256_castsi256_ps(_mm256_cmpeq_epi32(set, bit));
}
/// Lane i of `a` where bit i of `mask` is set, else of `b`.
inline F16x select(std::uint32_t mask, F16x a, F16x b) {
  return {_mm256_blendv_ps(b.lo, a.lo, lane_mask(mask)),
          _mm256_blendv_ps(b.hi, a.hi, lane_mask(mask >> 8))};
}
/// The first n <= 16 floats at p, then zeros; reads and writes nothing behind them.
inline F16x load_first(const float* p, std::size_t n) {
  const std::uint32_t mask = (std::uint32_t{1} << n) - 1;
  return {_mm256_maskload_ps(p, _mm256_castps_si256(lane_mask(mask))),
          _mm256_maskload_ps(p + 8, _mm256_castps_si256(lane_mask(mask >> 8)))};
}
inline void store_first(float* p, F16x a, std::size_t n) {
  const std::uint32_t mask = (std::uint32_t{1} << n) - 1;
  _mm256_maskstore_ps(p, _mm256_castps_si256(lane_mask(mask)), a.lo);
  _mm256_maskstore_ps(p + 8, _mm256_castps_si256(lane_mask(mask >> 8)), a.hi);
}
/// a*b - c in even lanes, a*b + c in odd ones.
inline F16x fmaddsub(F16x a, F16x b, F16x c) {
  return {_mm256_fmaddsub_ps(a.lo, b.lo, c.lo), _mm256_fmaddsub_ps(a.hi, b.hi, c.hi)};
}
/// Lanes 1 0 3 2 5 4 ...
inline F16x swap_neighbours(F16x a) {
  return {_mm256_permute_ps(a.lo, 0xb1), _mm256_permute_ps(a.hi, 0xb1)};
}
/// Lanes 0 0 1 1 ... 7 7.
inline F16x repeat_low(F16x a) {
  const __m256 even = _mm256_unpacklo_ps(a.lo, a.lo), odd = _mm256_unpackhi_ps(a.lo, a.lo);
  return {_mm256_permute2f128_ps(even, odd, 0x20), _mm256_permute2f128_ps(even, odd, 0x31)};
}
/// Bit i is set where a < b in lane i.
inline std::uint32_t less(F16x a, F16x b) {
  const int lo = _mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ));
  const int hi = _mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ));
  return static_cast<std::uint32_t>(lo | (hi << 8));
}
/// 2^a for whole a in [-126, 127].
inline F16x exp2_int(F16x a) {
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i lo = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(a.lo), bias), 23);
  const __m256i hi = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(a.hi), bias), 23);
  return {_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}

inline F16x load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline void store_f16(std::uint16_t* p, F16x a) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, kNearest));
}
inline __m256 widen_bf16(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline F16x load_bf16(const std::uint16_t* p) { return {widen_bf16(p), widen_bf16(p + 8)}; }
/// One of each of 16 pairs of BF16 numbers.
inline F16x load_bf16_of_pairs(const std::uint16_t* p, bool second) {
  const __m128i shift = _mm_cvtsi32_si128(second ? 0 : 16);
  const auto half = [&](const std::uint16_t* pairs) {
    const __m256i bits =
        _mm256_sll_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs)), shift);
    return _mm256_castsi256_ps(_mm256_and_si256(bits, _mm256_set1_epi32(-65536)));
  };
  return {half(p), half(p + 16)};
}
inline __m256i round_bf16(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  return _mm256_srli_epi32(rounded, 16);
}
/// Round to nearest even; no NaNs.
inline void store_bf16(std::uint16_t* p, F16x a) {
  const __m256i packed = _mm256_packus_epi32(round_bf16(a.lo), round_bf16(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0xd8));
}

inline __m256 low_half(F16x a) { return a.lo; }
inline __m256 high_half(F16x a) { return a.hi; }

#include "cpu/simd_common.inl.h"

}  // namespace
INCIPIT_TARGET_END
}  // namespace incipit::cpu::avx2

#endif  // INCIPIT_CPU_SIMD_AVX2_H_
