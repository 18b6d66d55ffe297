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

inline std::int32_t sum_of(__m256i sums) {
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}

inline void quantize_block(const float* in, RowBlock& out) {
  const __m256 x[4] = {_mm256_loadu_ps(in), _mm256_loadu_ps(in + 8), _mm256_loadu_ps(in + 16),
                       _mm256_loadu_ps(in + 24)};
  const float top = __builtin_bit_cast(float, largest_magnitude(x));
  if (!(top >= kTinyActivation && top <= kLargestActivation)) {
    out = {};
    out.d = out.s = top < kTinyActivation ? 0.0f : kDamagedScale;
    return;
  }
  constexpr auto kLargest = static_cast<float>(kLargestInteger);
  const __m256 inverse = _mm256_set1_ps(kLargest / top);
  __m256i q[4];
  INCIPIT_UNROLL
  for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(x[i], inverse));
  const std::int32_t sum =
      sum_of(_mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3])));
  INCIPIT_UNROLL
  for (int i = 0; i < 4; i += 2) {
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(q[i], q[i + 1]), 0xd8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q + 8 * i), packed);
  }
  out.d = top / kLargest;
  out.s = out.d * static_cast<float>(sum);
  out.offset_8 = -8 * sum;
  out.offset_128 = -128 * sum;
}

void quantize_groups(ConstMatrix x, std::size_t begin, std::size_t end, RowBlock* out) {
  const std::size_t blocks = x.columns / kBlock;
  const RowGroups groups(x.rows, kTileRows);
  for (std::size_t g = begin; g < end; ++g) {
    const std::size_t first = groups.begin(g), rows = groups.size(g);
    for (std::size_t r = 0; r < rows; ++r) {
      const float* const in = x.row(first + r);
      RowBlock* const to = out + first * blocks + r;
      for (std::size_t b = 0; b < blocks; ++b) quantize_block(in + b * kBlock, to[b * rows]);
    }
  }
}
