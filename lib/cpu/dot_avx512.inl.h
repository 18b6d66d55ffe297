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
inline Ints low_nibbles(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
inline Ints high_nibbles(Ints a) { return low_nibbles(_mm512_srli_epi16(a, 4)); }
inline Ints load_bits(const std::byte* p) { return _mm512_loadu_si512(p); }
/// By kLeft bits, right if that is negative; what comes into a byte from its neighbour is to be
/// masked out.
template <int kLeft>
inline Ints shift_bytes(Ints a) {
  if constexpr (kLeft < 0) {
    return _mm512_srli_epi16(a, -kLeft);
  } else {
    return _mm512_slli_epi16(a, kLeft);
  }
}
/// low | (bits & mask)
inline Ints add_bits(Ints low, Ints bits, int mask) {
  return _mm512_ternarylogic_epi32(low, bits, _mm512_set1_epi8(static_cast<char>(mask)), 0xf8);
}
inline Ints repeat_int(std::int32_t a) { return _mm512_set1_epi32(a); }
inline Floats repeat_float(float a) { return _mm512_set1_ps(a); }
inline Floats no_sum() { return _mm512_setzero_ps(); }
inline Floats load_scales(const std::byte* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline Floats load_factors(const std::byte* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
}
inline Floats multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }

/// acc + (w * x) * float(dot), the last product and the sum fused.
inline Floats add_scaled(Floats acc, Floats w, Floats x, Ints dot) {
  return _mm512_fmadd_ps(_mm512_mul_ps(w, x), _mm512_cvtepi32_ps(dot), acc);
}
inline Floats add_product(Floats acc, Floats w, Floats x) { return _mm512_fmadd_ps(w, x, acc); }
inline Floats subtract_product(Floats acc, Floats w, Floats x) {
  return _mm512_fnmadd_ps(w, x, acc);
}

inline Ints shift_digit(Ints a) { return _mm512_slli_epi32(a, kDigitBits); }
inline Ints add_ints(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
inline Floats scale_low(Floats w) { return _mm512_mul_ps(w, _mm512_set1_ps(kLowDigit)); }

// A growing sum of weights x digits. The weights are unsigned; where they stand for q_w + offset,
// the sum begins with what makes up for that.
using Dot = __m512i;

template <tensor::DType kType>
inline Ints offset_sum(std::int32_t minus_digits) {
  constexpr auto kOffset = static_cast<unsigned>(tensor::code_offset(kType));
  if constexpr (kOffset == 0) {
    return repeat_int(0);
  } else {
    constexpr int kShift = __builtin_ctz(kOffset);
    return _mm512_slli_epi32(repeat_int(minus_digits), kShift);
  }
}
inline Dot dot_start(Ints base) { return base; }
template <tensor::DType kType>
inline Ints dot_operand(Ints w) {
  return w;
}
template <tensor::DType kType>
inline Dot dot_add(Dot dot, Ints w, Ints x) {
  return _mm512_dpbusd_epi32(dot, w, x);
}
template <std::size_t kRows, std::size_t kColumns>
inline void make_room(Dot (&)[kRows][kColumns]) {}  // 32 bits have room for all
template <tensor::DType kType>
inline Ints dot_sum(Dot dot) {
  return dot;
}

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
