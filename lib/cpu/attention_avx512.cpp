// SPDX-License-Identifier: Apache-2.0
#include "base/target.h"

#if INCIPIT_CPU_X86

#include <limits>
#include <utility>

#include "cpu/attention_kernel.h"
#include "cpu/simd_avx512.h"

namespace incipit::cpu::avx512 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512)
namespace {

// 24 of the 32 registers hold sums; the more rows, the more is made of each key that is widened.
constexpr std::uint32_t kTileRows = 12;
template <std::size_t R>
constexpr std::uint32_t kBlocksAtOnce = R <= 3 ? 4 : 2;
template <std::size_t R>
constexpr std::size_t kVectorsAtOnce = R <= 3 ? 4 : 2;

inline F16x add_to_exponent(F16x p, F16x n) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(n.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), exponent))};
}

inline void split_bf16(const std::uint16_t* p, F16x& even, F16x& odd) {
  const __m512i values = _mm512_loadu_si512(p);
  even = {_mm512_castsi512_ps(_mm512_slli_epi32(values, 16))};
  odd = {_mm512_castsi512_ps(_mm512_and_si512(values, _mm512_set1_epi32(-0x10000)))};
}
inline void split_f16(const std::uint16_t* p, F16x& even, F16x& odd) {
  const __m512i values = _mm512_loadu_si512(p);
  even = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(values))};
  odd = {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(values, 16)))};
}

inline void split_int8(const std::int8_t* p, F16x& even, F16x& odd) {
  const __m512i pairs =
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  even = {_mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16))};
  odd = {_mm512_cvtepi32_ps(_mm512_srai_epi32(pairs, 16))};
}

#include "cpu/attention_simd.inl.h"

}  // namespace
INCIPIT_TARGET_END

const AttentionKernel& attention_kernel(device::KvFormat format) noexcept {
  return kernel_of(format);
}

}  // namespace incipit::cpu::avx512

#endif  // INCIPIT_CPU_X86
