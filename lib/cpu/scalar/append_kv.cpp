// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/kv_order.h"
#include "cpu/scalar/exp.h"
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {
namespace {

using device::KvFormat;

template <class T>
void store(std::byte* base, std::size_t index, T value) {
  std::memcpy(base + index * sizeof(T), &value, sizeof(T));
}

/// One head's K and V of one position.
void append_f32(std::byte* k_out, std::byte* v_out, std::size_t position, std::size_t head_dim,
                const float* k, const float* v) {
  for (std::size_t i = 0; i < head_dim; ++i) {
    store(k_out, k_index_f32(position, i), k[i]);
    store(v_out, v_index_f32(position, i, head_dim), v[i]);
  }
}

template <std::uint16_t (*FromFloat)(float)>
void append_16(std::byte* k_out, std::byte* v_out, std::size_t position, std::size_t head_dim,
               const float* k, const float* v) {
  for (std::size_t i = 0; i < head_dim; ++i) {
    store(k_out, k_index_pairs(position, i), FromFloat(k[i]));
    store(v_out, v_index_pairs(position, i, head_dim), FromFloat(v[i]));
  }
}

/// Values as integers by the contract of kv_order.h.
struct Integers {
  float scale = 0.0f;
  float inverse = 0.0f;  // q = x * inverse, rounded; unless that is 0

  Integers(const float* x, std::size_t head_dim) {
    float top = 0.0f;
    for (std::size_t i = 0; i < head_dim; ++i) {
      if (!std::isfinite(x[i])) {
        scale = kDamagedKvScale;
        return;
      }
      top = std::max(top, std::abs(x[i]));
    }
    if (top < kTinyKv) return;
    constexpr auto kLargest = static_cast<float>(kLargestKvInteger);
    scale = top / kLargest;
    inverse = kLargest / top;
  }

  std::int8_t round(float x) const {
    return inverse == 0.0f ? std::int8_t{0} : static_cast<std::int8_t>(round_to_even(x * inverse));
  }
};

void append_int8(std::byte* k_out, std::byte* v_out, std::size_t position, std::size_t head_dim,
                 const float* k, const float* v) {
  const Integers keys(k, head_dim), values(v, head_dim);
  for (std::size_t i = 0; i < head_dim; ++i) {
    store(k_out, k_index_pairs(position, i), keys.round(k[i]));
    store(v_out, v_index_pairs(position, i, head_dim), values.round(v[i]));
  }
  store(k_out + device::kBlockTokens * head_dim, position, keys.scale);
  store(v_out + device::kBlockTokens * head_dim, position, values.scale);
}

}  // namespace

void append_kv(const device::KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
               const device::KvSlot* slots) {
  const device::KvShape& shape = pool.layout.shape();
  const auto append = shape.type == KvFormat::kF32    ? append_f32
                      : shape.type == KvFormat::kF16  ? append_16<tensor::f32_to_f16>
                      : shape.type == KvFormat::kBF16 ? append_16<tensor::f32_to_bf16>
                                                      : append_int8;
  for (std::size_t row = 0; row < k.rows; ++row) {
    std::byte* const block = pool.block(slots[row].block);
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      append(block + pool.layout.k_offset(layer, head), block + pool.layout.v_offset(layer, head),
             slots[row].offset, shape.head_dim, k.row(row) + head * shape.head_dim,
             v.row(row) + head * shape.head_dim);
    }
  }
}

}  // namespace incipit::cpu::scalar
