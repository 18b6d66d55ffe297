// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions: norm, sum, activation
// and rotation of rows.

constexpr std::size_t kLanes = 16;

void rms_norm(ConstMatrix x, const float* weight, float epsilon, Matrix out) {
  const std::size_t n = x.columns;
  for (std::size_t row = 0; row < x.rows; ++row) {
    const float* const in = x.row(row);
    float* const to = out.row(row);
    const float mean = sum_of_squares(in, n) / static_cast<float>(n);
    const F16x scale = set1(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + epsilon))));
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      store(to + i, mul(mul(load(in + i), scale), load(weight + i)));
    }
    if (i < n) {
      const F16x scaled = mul(load_first(in + i, n - i), scale);
      store_first(to + i, mul(scaled, load_first(weight + i, n - i)), n - i);
    }
  }
}

void add_rows(Matrix x, ConstMatrix y) {
  for (std::size_t row = 0; row < x.rows; ++row) {
    float* const a = x.row(row);
    const float* const b = y.row(row);
    std::size_t i = 0;
    for (; i + kLanes <= x.columns; i += kLanes) store(a + i, add(load(a + i), load(b + i)));
    const std::size_t rest = x.columns - i;
    if (rest > 0) store_first(a + i, add(load_first(a + i, rest), load_first(b + i, rest)), rest);
  }
}

inline F16x gated(F16x gate, F16x up) {
  const F16x silu = div(gate, add(set1(1.0f), exp(sub(zero(), gate))));
  return mul(silu, up);
}

void swiglu(ConstMatrix gate, ConstMatrix up, Matrix out) {
  for (std::size_t row = 0; row < out.rows; ++row) {
    const float* const g = gate.row(row);
    const float* const u = up.row(row);
    float* const to = out.row(row);
    std::size_t i = 0;
    for (; i + kLanes <= out.columns; i += kLanes) {
      store(to + i, gated(load(g + i), load(u + i)));
    }
    const std::size_t rest = out.columns - i;
    if (rest > 0) {
      store_first(to + i, gated(load_first(g + i, rest), load_first(u + i, rest)), rest);
    }
  }
}

// The pairs (a, b) of a head turn to (a cos - b sin, b cos + a sin), each with one product rounded
// and one fused.

/// a in head[0..half), b in head[half..2 half).
inline void turn_halves(float* head, const float* cosines, const float* sines, std::size_t half) {
  for (std::size_t i = 0; i < half; i += kLanes) {
    const std::size_t n = half - i < kLanes ? half - i : kLanes;
    const F16x c = load_first(cosines + i, n), s = load_first(sines + i, n);
    const F16x a = load_first(head + i, n), b = load_first(head + half + i, n);
    store_first(head + i, fms(a, c, mul(b, s)), n);
    store_first(head + half + i, fma(b, c, mul(a, s)), n);
  }
}

/// a and b side by side.
inline void turn_adjacent(float* head, const float* cosines, const float* sines, std::size_t half) {
  for (std::size_t i = 0; i < half; i += kLanes / 2) {
    const std::size_t n = half - i < kLanes / 2 ? half - i : kLanes / 2;
    const F16x c = repeat_low(load_first(cosines + i, n));
    const F16x s = repeat_low(load_first(sines + i, n));
    const F16x x = load_first(head + 2 * i, 2 * n);
    store_first(head + 2 * i, fmaddsub(x, c, mul(swap_neighbours(x), s)), 2 * n);
  }
}

void rope(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs) {
  const std::size_t half = angles.columns / 2;
  const bool halves = pairs == device::RopePairs::kHalves;
  for (std::size_t row = 0; row < x.rows; ++row) {
    const float* const cosines = angles.row(row);
    for (std::size_t first = 0; first < x.columns; first += head_dim) {
      float* const head = x.row(row) + first;
      if (halves) {
        turn_halves(head, cosines, cosines + half, half);
      } else {
        turn_adjacent(head, cosines, cosines + half, half);
      }
    }
  }
}
