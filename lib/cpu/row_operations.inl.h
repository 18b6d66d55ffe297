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

void layer_norm(ConstMatrix x, const float* weight, const float* bias, float epsilon, Matrix out) {
  const std::size_t n = x.columns;
  const auto count = static_cast<float>(n);
  for (std::size_t row = 0; row < x.rows; ++row) {
    const float* const in = x.row(row);
    float* const to = out.row(row);
    const float mean = sum_of_values(in, n) / count;
    const float variance = sum_of_squares_from(in, n, mean) / count;
    const F16x middle = set1(mean);
    const F16x scale = set1(1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(variance + epsilon))));
    std::size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const F16x scaled = mul(sub(load(in + i), middle), scale);
      store(to + i, fma(scaled, load(weight + i), load(bias + i)));
    }
    if (const std::size_t rest = n - i; rest > 0) {
      const F16x scaled = mul(sub(load_first(in + i, rest), middle), scale);
      const F16x result = fma(scaled, load_first(weight + i, rest), load_first(bias + i, rest));
      store_first(to + i, result, rest);
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

inline F16x silu(F16x x) { return div(x, add(set1(1.0f), exp(sub(zero(), x)))); }
inline F16x gelu_tanh(F16x x) {
  const F16x u = mul(set1(0.797884561f), fma(set1(0.044715f), mul(x, mul(x, x)), x));
  return div(x, add(set1(1.0f), exp(mul(set1(-2.0f), u))));
}
inline F16x relu(F16x x) { return select(less(x, zero()), zero(), x); }

template <F16x (*kActivation)(F16x)>
inline void activate_rows(ConstMatrix gate, ConstMatrix up, Matrix out) {
  const bool gated = up.data != nullptr;
  for (std::size_t row = 0; row < out.rows; ++row) {
    const float* const g = gate.row(row);
    const float* const u = gated ? up.row(row) : nullptr;
    float* const to = out.row(row);
    std::size_t i = 0;
    for (; i + kLanes <= out.columns; i += kLanes) {
      const F16x value = kActivation(load(g + i));
      store(to + i, gated ? mul(value, load(u + i)) : value);
    }
    if (const std::size_t rest = out.columns - i; rest > 0) {
      const F16x value = kActivation(load_first(g + i, rest));
      store_first(to + i, gated ? mul(value, load_first(u + i, rest)) : value, rest);
    }
  }
}

void activate(device::Activation activation, ConstMatrix gate, ConstMatrix up, Matrix out) {
  switch (activation) {
    case device::Activation::kSilu:
      return activate_rows<silu>(gate, up, out);
    case device::Activation::kGeluTanh:
      return activate_rows<gelu_tanh>(gate, up, out);
    case device::Activation::kRelu:
      return activate_rows<relu>(gate, up, out);
  }
}

inline F16x capped(F16x x, float cap) {
  const F16x e = exp(mul(set1(-2.0f), abs(div(x, set1(cap)))));
  const F16x size = mul(set1(cap), div(sub(set1(1.0f), e), add(set1(1.0f), e)));
  const std::uint32_t negative = less(x, zero()), number = negative | less(set1(-1.0f), x);
  return select(number, select(negative, sub(zero(), size), size), x);  // exp() takes NaN for -87
}

void soft_cap(Matrix x, float cap) {
  for (std::size_t row = 0; row < x.rows; ++row) {
    float* const values = x.row(row);
    std::size_t i = 0;
    for (; i + kLanes <= x.columns; i += kLanes) store(values + i, capped(load(values + i), cap));
    if (const std::size_t rest = x.columns - i; rest > 0) {
      store_first(values + i, capped(load_first(values + i, rest), cap), rest);
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
