// SPDX-License-Identifier: Apache-2.0
// Included by simd_avx2.h and simd_avx512.h inside their regions: what follows from the basic
// functions, in one order of operations for both.

// Ask for the cache line at p. Always inlined: g++ takes a function that only prefetches for one
// without effect, and drops calls of it.
[[gnu::always_inline]] inline void prefetch_l1(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
[[gnu::always_inline]] inline void prefetch_l2(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}

/// Sum of the lanes in one fixed tree.
inline float reduce_add(F16x a) {
  const __m256 eight = _mm256_add_ps(low_half(a), high_half(a));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

/// Sum over a row in one tree: four accumulators in turn, then (0 + 1) + (2 + 3), then the lanes.
/// kAdd(accumulator, values, parameter) takes 16 values; those behind the end are `filler`.
template <F16x (*kAdd)(F16x sum, F16x a, F16x parameter)>
inline float sum_of(const float* x, std::size_t n, float parameter, float filler) {
  constexpr std::size_t kLanes = 16;
  const F16x shared = set1(parameter);
  F16x sum[4] = {zero(), zero(), zero(), zero()};
  std::size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    INCIPIT_UNROLL
    for (std::size_t j = 0; j < 4; ++j) sum[j] = kAdd(sum[j], load(x + i + j * kLanes), shared);
  }
  for (std::size_t j = 0; i < n; i += kLanes, ++j) {
    const std::size_t rest = n - i < kLanes ? n - i : kLanes;
    const std::uint32_t there = (std::uint32_t{1} << rest) - 1;
    sum[j] = kAdd(sum[j], select(there, load_first(x + i, rest), set1(filler)), shared);
  }
  return reduce_add(add(add(sum[0], sum[1]), add(sum[2], sum[3])));
}

inline F16x add_value(F16x sum, F16x a, F16x) { return add(sum, a); }
inline F16x add_square(F16x sum, F16x a, F16x) { return fma(a, a, sum); }
inline F16x add_square_from(F16x sum, F16x a, F16x mean) {
  const F16x distance = sub(a, mean);
  return fma(distance, distance, sum);
}

inline float sum_of_values(const float* x, std::size_t n) {
  return sum_of<add_value>(x, n, 0.0f, 0.0f);
}
inline float sum_of_squares(const float* x, std::size_t n) {
  return sum_of<add_square>(x, n, 0.0f, 0.0f);
}
/// Of the distances from `mean`.
inline float sum_of_squares_from(const float* x, std::size_t n, float mean) {
  return sum_of<add_square_from>(x, n, mean, mean);
}

inline float reduce_max(F16x a) {
  const __m256 eight = _mm256_max_ps(low_half(a), high_half(a));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

/// e^x to about 1e-7 relative; exactly 0 below -87 (minus infinity included), exactly 1 at 0.
/// Range reduction by ln 2 in two parts, then a polynomial of degree 6 (Cephes expf).
inline F16x exp(F16x x) {
  const std::uint32_t vanishes = less(x, set1(-87.0f));
  const F16x clamped = min(max(x, set1(-87.0f)), set1(88.0f));
  const F16x n = round(mul(clamped, set1(1.44269504f)));
  const F16x r = fnma(n, set1(-2.12194440e-4f), fnma(n, set1(0.693359375f), clamped));
  F16x p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(p, mul(r, r), add(r, set1(1.0f)));
  return select(vanishes, zero(), mul(p, exp2_int(n)));
}
