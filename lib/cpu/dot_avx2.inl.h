// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp inside its region: what product_quantized.inl.h is built from.
// A column is the outputs of one vector register: here half a panel.

using Ints = __m256i;
using Floats = __m256;

constexpr std::size_t kColumnOutputs = 8;
// Sums of a tile of R rows x C columns: R * C integer and R * C float registers.
constexpr std::size_t kTileRows = 6, kTileColumns = 1;
// Up to this many rows the hardware's own prefetching is faster than ours: it is not where a panel
// is read in two halves.
constexpr std::size_t kStreamRows = 0;
// Panels of 16 outputs (two registers) of a tile of floats, by its rows.
constexpr std::size_t kFloatTilePanels[kTileRows] = {4, 2, 2, 1, 1, 1};

inline Ints load_line(const std::byte* p) {
  Ints line = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  // One load for both nibbles: compilers would fold it into each of the two uses.
  asm("" : "+x"(line));
  return line;
}
template <int kBits>
inline Ints shift_right(Ints a) {  // each 16 bits
  return _mm256_srli_epi16(a, kBits);
}
inline Ints keep(Ints a, std::int16_t mask) { return _mm256_and_si256(a, _mm256_set1_epi16(mask)); }
inline Ints repeat_int(std::int32_t a) { return _mm256_set1_epi32(a); }
inline Floats repeat_float(float a) { return _mm256_set1_ps(a); }
inline Floats no_sum() { return _mm256_setzero_ps(); }
inline Floats load_scales(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

/// acc + (w * x) * float(dot), the last product and the sum fused.
inline Floats add_scaled(Floats acc, Floats w, Floats x, Ints dot) {
  return _mm256_fmadd_ps(_mm256_mul_ps(w, x), _mm256_cvtepi32_ps(dot), acc);
}
inline Floats add_product(Floats acc, Floats w, Floats x) { return _mm256_fmadd_ps(w, x, acc); }

/// dot + the products of 16-bit pairs.
inline Ints add_pairs(Ints dot, Ints w, Ints x) {
  return _mm256_add_epi32(dot, _mm256_madd_epi16(w, x));
}

/// out = a + bias (none where null); the first n outputs of the column.
inline void store_outputs(float* out, Floats a, const float* bias, std::size_t n) {
  const __m256i mask = _mm256_castps_si256(lane_mask((std::uint32_t{1} << n) - 1));
  if (bias != nullptr) a = _mm256_add_ps(a, _mm256_maskload_ps(bias, mask));
  if (n == kColumnOutputs) {
    _mm256_storeu_ps(out, a);
  } else {
    _mm256_maskstore_ps(out, mask, a);
  }
}
