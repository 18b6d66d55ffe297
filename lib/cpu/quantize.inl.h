// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions: activations to
// integers, by the contract of quantized_rows.h.

inline __m256i magnitude_bits(__m256 a) {
  return _mm256_and_si256(_mm256_castps_si256(a), _mm256_set1_epi32(0x7fffffff));
}

/// The largest magnitude as its bits: those of an infinity or a NaN are above all others.
inline std::int32_t largest_magnitude(const __m256 (&x)[4]) {
  const __m256i most =
      _mm256_max_epi32(_mm256_max_epi32(magnitude_bits(x[0]), magnitude_bits(x[1])),
                       _mm256_max_epi32(magnitude_bits(x[2]), magnitude_bits(x[3])));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

/// 32 small integers as bytes, in their order.
inline __m256i to_bytes(const __m256i (&x)[4]) {
  const __m256i bytes =
      _mm256_packs_epi16(_mm256_packs_epi32(x[0], x[1]), _mm256_packs_epi32(x[2], x[3]));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/// Minus the sums of all 32 bytes and of the last 16.
inline void subtract_bytes(__m256i bytes, std::int32_t& minus_all, std::int32_t& minus_tail) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(-1));
  __m128i sums = _mm_hadd_epi32(_mm256_castsi256_si128(fours), _mm256_extracti128_si256(fours, 1));
  sums = _mm_hadd_epi32(sums, sums);  // front, tail, twice
  minus_tail = _mm_extract_epi32(sums, 1);
  minus_all = _mm_cvtsi128_si32(sums) + minus_tail;
}

inline void store_bytes(std::int8_t* out, __m256i bytes) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), bytes);
}

/// `threshold`: what top^2 * columns of a fine block is above.
inline void quantize_block(const float* in, float columns, float threshold, RowBlock& out) {
  const __m256 x[4] = {_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8), _mm256_loadu_ps(in + 16),
                       _mm256_loadu_ps(in + 24)};
  const float top = __builtin_bit_cast(float, largest_magnitude(x));
  if (!(top >= kTinyActivation && top <= kLargestActivation)) {
    out = {};
    out.d = out.s = top < kTinyActivation ? 0.0f : kDamagedScale;
    return;
  }
  constexpr auto kLargest = static_cast<float>(kLargestDigit);
  const bool fine = top * top * columns > threshold;
  const __m256 factor = _mm256_set1_ps((fine ? kLargest * (1 << kDigitBits) : kLargest) / top);
  __m256i high[4], low[4];
  INCIPIT_UNROLL
  for (int i = 0; i < 4; ++i) {
    const __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], factor));
    high[i] = q;
    if (!fine) continue;
    high[i] = _mm256_srai_epi32(_mm256_add_epi32(q, _mm256_set1_epi32(64)), kDigitBits);
    low[i] = _mm256_sub_epi32(q, _mm256_slli_epi32(high[i], kDigitBits));
  }
  const __m256i high_bytes = to_bytes(high);
  const __m256i low_bytes = fine ? to_bytes(low) : _mm256_setzero_si256();
  store_bytes(out.high, high_bytes);
  store_bytes(out.low, low_bytes);
  subtract_bytes(high_bytes, out.minus_high, out.minus_high_tail);
  out.minus_low = out.minus_low_tail = 0;
  if (fine) subtract_bytes(low_bytes, out.minus_low, out.minus_low_tail);
  out.d = top / kLargest;
  out.s = out.d * kLowDigit * static_cast<float>(-((out.minus_high << kDigitBits) + out.minus_low));
  out.fine = fine ? 1 : 0;
}

void quantize_groups(ConstMatrix x, float fine_ratio, std::size_t begin, std::size_t end,
                     RowBlock* out) {
  const std::size_t blocks = x.columns / kBlock;
  const auto columns = static_cast<float>(x.columns);
  const RowGroups groups(x.rows, kTileRows);
  for (std::size_t g = begin; g < end; ++g) {
    const std::size_t first = groups.begin(g), rows = groups.size(g);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const in = x.row(first + r);
      const float threshold = fine_ratio * sum_of_squares(in, x.columns);
      RowBlock* const to = out + first * blocks + r;
      for (std::size_t b = 0; b < blocks; ++b) {
        quantize_block(in + b * kBlock, columns, threshold, to[b * rows]);
      }
    }
  }
}
