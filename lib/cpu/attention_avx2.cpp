// SPDX-License-Identifier: Apache-2.0
#include "base/target.h"

#if INCIPIT_CPU_X86

#include <limits>
#include <utility>

#include "cpu/attention_kernel.h"
#include "cpu/simd_avx2.h"

namespace incipit::cpu::avx2 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX2)
namespace {

constexpr std::uint32_t kTileRows = 4;
template <std::size_t R>
constexpr std::uint32_t kBlocksAtOnce = R <= 2 ? 2 : 1;
template <std::size_t R>
constexpr std::size_t kVectorsAtOnce = R <= 2 ? 2 : 1;

inline __m256 add_to_exponent(__m256 p, __m256 n) {
  const __m256i exponent = _mm256_slli_epi32(_mm256_castps_si256(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), exponent));
}
inline F16x add_to_exponent(F16x p, F16x n) {
  return {add_to_exponent(p.lo, n.lo), add_to_exponent(p.hi, n.hi)};
}

inline void split_bf16(const std::uint16_t* p, F16x& even, F16x& odd) {
  const __m256i high = _mm256_set1_epi32(-0x10000);
  const __m256i lo = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i hi = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 16));
  even = {_mm256_castsi256_ps(_mm256_slli_epi32(lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(hi, 16))};
  odd = {_mm256_castsi256_ps(_mm256_and_si256(lo, high)),
         _mm256_castsi256_ps(_mm256_and_si256(hi, high))};
}

/// The eight even ones of sixteen values in the low half, the odd ones in the high half.
inline __m256i evens_then_odds(const std::uint16_t* p) {
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1,
                                         4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(values, order), 0xd8);
}
inline void split_f16(const std::uint16_t* p, F16x& even, F16x& odd) {
  const __m256i lo = evens_then_odds(p), hi = evens_then_odds(p + 16);
  even = {_mm256_cvtph_ps(_mm256_castsi256_si128(lo)), _mm256_cvtph_ps(_mm256_castsi256_si128(hi))};
  odd = {_mm256_cvtph_ps(_mm256_extracti128_si256(lo, 1)),
         _mm256_cvtph_ps(_mm256_extracti128_si256(hi, 1))};
}

/// The eight pairs of 16 values.
inline void split_pairs(__m128i values, __m256& even, __m256& odd) {
  const __m256i pairs = _mm256_cvtepi8_epi16(values);
  even = _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(pairs, 16), 16));
  odd = _mm256_cvtepi32_ps(_mm256_srai_epi32(pairs, 16));
}
inline void split_int8(const std::int8_t* p, F16x& even, F16x& odd) {
  split_pairs(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), even.lo, odd.lo);
  split_pairs(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)), even.hi, odd.hi);
}

#include "cpu/attention_simd.inl.h"

}  // namespace
INCIPIT_TARGET_END

const AttentionKernel& attention_kernel(device::KvFormat format) noexcept {
  return kernel_of(format);
}

}  // namespace incipit::cpu::avx2

#endif  // INCIPIT_CPU_X86
