// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx512.cpp inside its region: what product_quantized.inl.h is built from.
// A column is the outputs of one vector register: here a whole panel.

using Ints = __m512i;
using Floats = __m512;

constexpr std::size_t kColumnOutputs = 16;
// Sums of a tile of R rows x C columns: R * C integer and R * C float registers.
constexpr std::size_t kTileRows = 6, kTileColumns = 2;
// Up to this many rows the hardware's own prefetching is faster than ours.
constexpr std::size_t kStreamRows = 3;
// Panels of 16 outputs of a tile of floats, by its rows.
constexpr std::size_t kFloatTilePanels[kTileRows] = {4, 4, 4, 4, 4, 4};

inline Ints load_line(const std::byte* p) {
  Ints line = _mm512_loadu_si512(p);
  // One load for both nibbles: compilers would fold it into each of the two uses.
  asm("" : "+v"(line));
  return line;
}
template <int kBits>
inline Ints shift_right(Ints a) {  // each 16 bits
  return _mm512_srli_epi16(a, kBits);
}
inline Ints keep(Ints a, std::int16_t mask) { return _mm512_and_si512(a, _mm512_set1_epi16(mask)); }
inline Ints repeat_int(std::int32_t a) { return _mm512_set1_epi32(a); }
inline Floats repeat_float(float a) { return _mm512_set1_ps(a); }
inline Floats no_sum() { return _mm512_setzero_ps(); }
inline Floats load_scales(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

/// acc + (w * x) * float(dot), the last product and the sum fused.
inline Floats add_scaled(Floats acc, Floats w, Floats x, Ints dot) {
  return _mm512_fmadd_ps(_mm512_mul_ps(w, x), _mm512_cvtepi32_ps(dot), acc);
}
inline Floats add_product(Floats acc, Floats w, Floats x) { return _mm512_fmadd_ps(w, x, acc); }

/// dot + the products of 16-bit pairs.
inline Ints add_pairs(Ints dot, Ints w, Ints x) { return _mm512_dpwssd_epi32(dot, w, x); }

/// out = a + bias (none where null); the first n outputs of the column.
inline void store_outputs(float* out, Floats a, const float* bias, std::size_t n) {
  const auto mask = static_cast<__mmask16>((1u << n) - 1);
  if (bias != nullptr) a = _mm512_add_ps(a, _mm512_maskz_loadu_ps(mask, bias));
  if (n == kColumnOutputs) {
    _mm512_storeu_ps(out, a);
  } else {
    _mm512_mask_storeu_ps(out, mask, a);
  }
}
