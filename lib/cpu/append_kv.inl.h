// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions: K and V of new tokens
// into the pool, in the order of kv_order.h. Each value is written on its own: rows of one block
// may be written by two threads.

constexpr std::size_t kRoundedAtOnce = 64;

inline void append_head_f32(std::byte* k_out, std::byte* v_out, std::size_t position,
                            std::size_t head_dim, const float* k, const float* v) {
  auto* const k_to = reinterpret_cast<float*>(k_out);
  auto* const v_to = reinterpret_cast<float*>(v_out);
  for (std::size_t i = 0; i < head_dim; ++i) k_to[k_index_f32(position, i)] = k[i];
  __builtin_memcpy(v_to + v_index_f32(position, 0, head_dim), v, head_dim * sizeof(float));
}

/// n <= kRoundedAtOnce values.
template <device::KvFormat kFormat>
inline void round_values(const float* in, std::size_t n, std::uint16_t* out) {
  constexpr std::size_t kStep = 16;
  for (std::size_t i = 0; i < n; i += kStep) {
    const F16x x = load_first(in + i, n - i < kStep ? n - i : kStep);
    if constexpr (kFormat == device::KvFormat::kF16) {
      store_f16(out + i, x);
    } else {
      store_bf16(out + i, x);
    }
  }
}

template <device::KvFormat kFormat>
inline void append_head_16(std::byte* k_out, std::byte* v_out, std::size_t position,
                           std::size_t head_dim, const float* k, const float* v) {
  auto* const k_to = reinterpret_cast<std::uint16_t*>(k_out);
  auto* const v_to = reinterpret_cast<std::uint16_t*>(v_out);
  alignas(64) std::uint16_t rounded[kRoundedAtOnce];
  for (std::size_t i = 0; i < head_dim; i += kRoundedAtOnce) {
    const std::size_t n = head_dim - i < kRoundedAtOnce ? head_dim - i : kRoundedAtOnce;
    round_values<kFormat>(k + i, n, rounded);
    for (std::size_t j = 0; j < n; j += 2) {  // two dimensions lie side by side
      __builtin_memcpy(k_to + k_index_pairs(position, i + j), rounded + j, 4);
    }
    round_values<kFormat>(v + i, n, rounded);
    for (std::size_t j = 0; j < n; ++j) v_to[v_index_pairs(position, i + j, head_dim)] = rounded[j];
  }
}

/// How a row's values become integers by the contract of kv_order.h: q = x * inverse, rounded.
struct KvScale {
  float inverse, scale;
};

inline KvScale scale_of(const float* in, std::size_t n) {
  std::uint32_t top_bits = 0;  // those of an infinity or a NaN are above all others
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, in[i]) & 0x7fffffffu;
    top_bits = top_bits < bits ? bits : top_bits;
  }
  const float top = __builtin_bit_cast(float, top_bits);
  if (top < kTinyKv) return {0.0f, 0.0f};
  if (top_bits >= 0x7f800000u) return {0.0f, kDamagedKvScale};
  constexpr auto kLargest = static_cast<float>(kLargestKvInteger);
  return {kLargest / top, top / kLargest};
}

/// n <= kRoundedAtOnce values.
inline void round_to_integers(const float* in, std::size_t n, float inverse, std::int8_t* out) {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23 + q has q in its lowest bits
  for (std::size_t i = 0; i < n; ++i) {
    const float x = inverse == 0.0f ? kShift : in[i] * inverse + kShift;
    out[i] = static_cast<std::int8_t>(__builtin_bit_cast(std::int32_t, x));
  }
}

inline void append_head_int8(std::byte* k_out, std::byte* v_out, std::size_t position,
                             std::size_t head_dim, const float* k, const float* v) {
  const KvScale k_scale = scale_of(k, head_dim), v_scale = scale_of(v, head_dim);
  std::int8_t rounded[kRoundedAtOnce];
  for (std::size_t i = 0; i < head_dim; i += kRoundedAtOnce) {
    const std::size_t n = head_dim - i < kRoundedAtOnce ? head_dim - i : kRoundedAtOnce;
    round_to_integers(k + i, n, k_scale.inverse, rounded);
    for (std::size_t j = 0; j < n; j += 2) {
      __builtin_memcpy(k_out + k_index_pairs(position, i + j), rounded + j, 2);
    }
    round_to_integers(v + i, n, v_scale.inverse, rounded);
    for (std::size_t j = 0; j < n; ++j) {
      v_out[v_index_pairs(position, i + j, head_dim)] = static_cast<std::byte>(rounded[j]);
    }
  }
  const std::size_t scale_at = device::kBlockTokens * head_dim + position * sizeof(float);
  __builtin_memcpy(k_out + scale_at, &k_scale.scale, sizeof(float));
  __builtin_memcpy(v_out + scale_at, &v_scale.scale, sizeof(float));
}

void append_kv(const device::KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
               const device::KvSlot* slots) {
  const device::KvShape& shape = pool.layout.shape();
  using device::KvFormat;
  const auto append = shape.type == KvFormat::kF32    ? append_head_f32
                      : shape.type == KvFormat::kF16  ? append_head_16<KvFormat::kF16>
                      : shape.type == KvFormat::kBF16 ? append_head_16<KvFormat::kBF16>
                                                      : append_head_int8;
  for (std::size_t row = 0; row < k.rows; ++row) {
    std::byte* const block = pool.block(slots[row].block);
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      append(block + pool.layout.k_offset(layer, head), block + pool.layout.v_offset(layer, head),
             slots[row].offset, shape.head_dim, k.row(row) + head * shape.head_dim,
             v.row(row) + head * shape.head_dim);
    }
  }
}
