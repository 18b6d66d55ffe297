// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_SIMD_AVX512_H_
#define INCIPIT_CPU_SIMD_AVX512_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "base/target.h"

// Sixteen floats in one register. simd_avx2.h has the same type and functions over two registers
// with the same results, bit for bit; kernels that use nothing else are written once for both.

namespace incipit::cpu::avx512 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512)
namespace {

struct F16x {
  __m512 v;
};

inline F16x load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F16x a) { _mm512_storeu_ps(p, a.v); }
inline F16x set1(float a) { return {_mm512_set1_ps(a)}; }
inline F16x zero() { return {_mm512_setzero_ps()}; }
inline F16x add(F16x a, F16x b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F16x sub(F16x a, F16x b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F16x mul(F16x a, F16x b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F16x div(F16x a, F16x b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F16x fma(F16x a, F16x b, F16x c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }    // a*b + c
inline F16x fnma(F16x a, F16x b, F16x c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }  // c - a*b
inline F16x fms(F16x a, F16x b, F16x c) { return {_mm512_fmsub_ps(a.v, b.v, c.v)}; }    // a*b - c
inline F16x max(F16x a, F16x b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F16x min(F16x a, F16x b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F16x abs(F16x a) { return {_mm512_abs_ps(a.v)}; }
inline F16x round(F16x a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// Lane i of `a` where bit i of `mask` is set, else of `b`.
inline F16x select(std::uint32_t mask, F16x a, F16x b) {
  return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), b.v, a.v)};
}
/// The first n <= 16 floats at p, then zeros; reads and writes nothing behind them.
inline F16x load_first(const float* p, std::size_t n) {
  return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p)};
}
inline void store_first(float* p, F16x a, std::size_t n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), a.v);
}
/// a*b - c in even lanes, a*b + c in odd ones.
inline F16x fmaddsub(F16x a, F16x b, F16x c) { return {_mm512_fmaddsub_ps(a.v, b.v, c.v)}; }
/// Lanes 1 0 3 2 5 4 ...
inline F16x swap_neighbours(F16x a) { return {_mm512_permute_ps(a.v, 0xb1)}; }
/// Lanes 0 0 1 1 ... 7 7.
inline F16x repeat_low(F16x a) {
  const __m512i from = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {_mm512_permutexvar_ps(from, a.v)};
}
/// Bit i is set where a < b in lane i.
inline std::uint32_t less(F16x a, F16x b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ); }
/// 2^a for whole a in [-126, 127].
inline F16x exp2_int(F16x a) {
  const __m512i n = _mm512_add_epi32(_mm512_cvtps_epi32(a.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(n, 23))};
}

inline F16x load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline void store_f16(std::uint16_t* p, F16x a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline F16x load_bf16(const std::uint16_t* p) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
/// One of each of 16 pairs of BF16 numbers.
inline F16x load_bf16_of_pairs(const std::uint16_t* p, bool second) {
  const __m512i pairs = _mm512_sll_epi32(_mm512_loadu_si512(p), _mm_cvtsi32_si128(second ? 0 : 16));
  return {_mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-65536)))};
}
/// Round to nearest even; no NaNs.
inline void store_bf16(std::uint16_t* p, F16x a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}

inline __m256 low_half(F16x a) { return _mm512_castps512_ps256(a.v); }
inline __m256 high_half(F16x a) { return _mm512_extractf32x8_ps(a.v, 1); }

#include "cpu/simd_common.inl.h"

}  // namespace
INCIPIT_TARGET_END
}  // namespace incipit::cpu::avx512

#endif  // INCIPIT_CPU_SIMD_AVX512_H_
