// SPDX-License-Identifier: Apache-2.0
#include "base/target.h"

#if INCIPIT_CPU_X86

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu/kernels.h"
#include "cpu/simd_avx512.h"

// BF16 weights by BF16 dot products: one instruction multiplies and adds two inputs of 16 outputs.
// Activations are rounded to BF16 (to nearest even; what is subnormal counts as zero), products are
// added in F32.

namespace incipit::cpu::avx512 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512_BF16)
namespace {

constexpr std::size_t kTileRows = 6;
// Panels of a tile, by its rows: few rows need many sums to hide the latency of the additions.
constexpr std::size_t kFloatTilePanels[kTileRows] = {4, 4, 4, 4, 4, 4};

#include "cpu/product_float.inl.h"

struct Bf16Operands {
  static constexpr std::size_t kInputs = 2;
  using Weights = __m512bh;
  using Input = __m512bh;

  static const std::uint16_t* row(const ProductPart& part, std::size_t r) {
    return part.rounded + r * rounded_columns(part.x.columns);
  }
  static Weights weights(const std::byte* panel, std::size_t step) {
    return reinterpret_cast<Weights>(_mm512_loadu_si512(panel + step * 4 * kPanelOutputs));
  }
  static Input input(const std::uint16_t* row, std::size_t step) {
    std::int32_t pair;
    std::memcpy(&pair, row + 2 * step, sizeof(pair));
    return reinterpret_cast<Input>(_mm512_set1_epi32(pair));
  }
  static F16x add(F16x sum, Weights w, Input x) { return {_mm512_dpbf16_ps(sum.v, w, x)}; }
};

void product(const ProductPart& part) {
  if (part.weight->type() == tensor::DType::kBF16) return product_float<Bf16Operands>(part);
  kernels().product(part);
}

void round_rows(ConstMatrix x, std::size_t begin, std::size_t end, std::uint16_t* out) {
  const std::size_t stride = rounded_columns(x.columns);
  for (std::size_t row = begin; row < end; ++row) {
    const float* const in = x.row(row);
    std::uint16_t* const to = out + row * stride;
    for (std::size_t k = 0; k < stride; k += 16) {
      const std::size_t left = x.columns - k < 16 ? x.columns - k : 16;
      const std::size_t room = stride - k < 16 ? stride - k : 16;
      const auto some = static_cast<__mmask16>((1u << left) - 1);
      const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(some, in + k));
      _mm256_mask_storeu_epi16(to + k, static_cast<__mmask16>((1u << room) - 1),
                               reinterpret_cast<__m256i>(rounded));
    }
  }
}

}  // namespace
INCIPIT_TARGET_END

void use_bf16_dots(Kernels& kernels) noexcept {
  kernels.product = product;
  kernels.round_rows = round_rows;
}

}  // namespace incipit::cpu::avx512

#endif  // INCIPIT_CPU_X86
