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
template <tensor::DType kType>
inline void round_values(const float* in, std::size_t n, std::uint16_t* out) {
  constexpr std::size_t kStep = 16;
  for (std::size_t i = 0; i < n; i += kStep) {
    const F16x x = load_first(in + i, n - i < kStep ? n - i : kStep);
    if constexpr (kType == tensor::DType::kF16) {
      store_f16(out + i, x);
    } else {
      store_bf16(out + i, x);
    }
  }
}

template <tensor::DType kType>
inline void append_head_16(std::byte* k_out, std::byte* v_out, std::size_t position,
                           std::size_t head_dim, const float* k, const float* v) {
  auto* const k_to = reinterpret_cast<std::uint16_t*>(k_out);
  auto* const v_to = reinterpret_cast<std::uint16_t*>(v_out);
  alignas(64) std::uint16_t rounded[kRoundedAtOnce];
  for (std::size_t i = 0; i < head_dim; i += kRoundedAtOnce) {
    const std::size_t n = head_dim - i < kRoundedAtOnce ? head_dim - i : kRoundedAtOnce;
    round_values<kType>(k + i, n, rounded);
    for (std::size_t j = 0; j < n; j += 2) {  // two dimensions lie side by side
      __builtin_memcpy(k_to + k_index_16(position, i + j), rounded + j, 4);
    }
    round_values<kType>(v + i, n, rounded);
    for (std::size_t j = 0; j < n; ++j) v_to[v_index_16(position, i + j, head_dim)] = rounded[j];
  }
}

void append_kv(const device::KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
               const device::KvSlot* slots) {
  const device::KvShape& shape = pool.layout.shape();
  const auto append = shape.type == tensor::DType::kF32   ? append_head_f32
                      : shape.type == tensor::DType::kF16 ? append_head_16<tensor::DType::kF16>
                                                          : append_head_16<tensor::DType::kBF16>;
  for (std::size_t row = 0; row < k.rows; ++row) {
    std::byte* const block = pool.block(slots[row].block);
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      append(block + pool.layout.k_offset(layer, head), block + pool.layout.v_offset(layer, head),
             slots[row].offset, shape.head_dim, k.row(row) + head * shape.head_dim,
             v.row(row) + head * shape.head_dim);
    }
  }
}
