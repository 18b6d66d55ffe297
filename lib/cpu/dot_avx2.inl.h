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
inline Ints low_nibbles(Ints a) { return _mm256_and_si256(a, _mm256_set1_epi8(15)); }
inline Ints high_nibbles(Ints a) { return low_nibbles(_mm256_srli_epi16(a, 4)); }
inline Ints load_bits(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
/// By kLeft bits, right if that is negative; what comes into a byte from its neighbour is to be
/// masked out.
template <int kLeft>
inline Ints shift_bytes(Ints a) {
  if constexpr (kLeft < 0) {
    return _mm256_srli_epi16(a, -kLeft);
  } else {
    return _mm256_slli_epi16(a, kLeft);
  }
}
/// low | (bits & mask)
inline Ints add_bits(Ints low, Ints bits, int mask) {
  return _mm256_or_si256(low, _mm256_and_si256(bits, _mm256_set1_epi8(static_cast<char>(mask))));
}
inline Ints repeat_int(std::int32_t a) { return _mm256_set1_epi32(a); }
inline Floats repeat_float(float a) { return _mm256_set1_ps(a); }
inline Floats no_sum() { return _mm256_setzero_ps(); }
inline Floats load_scales(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline Floats load_factors(const std::byte* p) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}
inline Floats multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }

/// acc + (w * x) * float(dot), the last product and the sum fused.
inline Floats add_scaled(Floats acc, Floats w, Floats x, Ints dot) {
  return _mm256_fmadd_ps(_mm256_mul_ps(w, x), _mm256_cvtepi32_ps(dot), acc);
}
inline Floats add_product(Floats acc, Floats w, Floats x) { return _mm256_fmadd_ps(w, x, acc); }
inline Floats subtract_product(Floats acc, Floats w, Floats x) {
  return _mm256_fnmadd_ps(w, x, acc);
}

inline Ints shift_digit(Ints a) { return _mm256_slli_epi32(a, kDigitBits); }
inline Ints add_ints(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
inline Floats scale_low(Floats w) { return _mm256_mul_ps(w, _mm256_set1_ps(kLowDigit)); }

// A growing sum of weights x digits. It is exact: vpmaddubsw saturates at 32767, and no digit is
// below -127.
//
// 4 bits: 16 bits hold all eight pairs of a lane, 8 * 2 * 15 * 127 = 30480. 5 bits: four pairs,
// 4 * 2 * 31 * 127 = 31496. 6 bits: two pairs, 2 * 2 * 63 * 127 = 32004. 8 bits: one pair of
// |w| * +-x, 2 * 128 * 127 = 32512.
struct Dot {
  Ints digit;  // sums of 16 bits, but for codes of 8 bits of 32
  Ints base;   // what they are added to in the end
};

template <tensor::DType kType>
inline Ints offset_sum(std::int32_t minus_digits) {
  constexpr auto kOffset = static_cast<unsigned>(tensor::code_offset(kType));
  if constexpr (kOffset == 0 || kType == tensor::DType::kQ8_0) {
    return repeat_int(0);
  } else {
    constexpr int kShift = __builtin_ctz(kOffset);
    return _mm256_slli_epi32(repeat_int(minus_digits), kShift);
  }
}
inline Dot dot_start(Ints base) { return {_mm256_setzero_si256(), base}; }
template <tensor::DType kType>
inline Ints dot_operand(Ints w) {
  if constexpr (kType != tensor::DType::kQ8_0) return w;
  return _mm256_xor_si256(w, _mm256_set1_epi8(-128));  // signed again
}
template <tensor::DType kType>
inline Dot dot_add(const Dot& dot, Ints w, Ints x) {
  if constexpr (kType != tensor::DType::kQ8_0) {
    return {_mm256_add_epi16(dot.digit, _mm256_maddubs_epi16(w, x)), dot.base};
  } else {
    const Ints pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return {_mm256_add_epi32(dot.digit, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))), dot.base};
  }
}
/// Empties the sums of 16 bits: after two lines of codes of 5 and 6 bits.
template <std::size_t kRows, std::size_t kColumns>
[[gnu::always_inline]] inline void make_room(Dot (&dot)[kRows][kColumns]) {
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < kRows; ++r) {
    INCIPIT_UNROLL
    for (std::size_t c = 0; c < kColumns; ++c) {
      const Ints wide = _mm256_madd_epi16(dot[r][c].digit, _mm256_set1_epi16(1));
      dot[r][c] = dot_start(_mm256_add_epi32(dot[r][c].base, wide));
    }
  }
}
template <tensor::DType kType>
inline Ints dot_sum(const Dot& dot) {
  if constexpr (kType == tensor::DType::kQ8_0) return _mm256_add_epi32(dot.base, dot.digit);
  return _mm256_add_epi32(dot.base, _mm256_madd_epi16(dot.digit, _mm256_set1_epi16(1)));
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
