// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "cpu/kv_order.h"
#include "cpu/scalar/kernels.h"

namespace incipit::cpu::scalar {
namespace {

using tensor::DType;

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
    store(k_out, k_index_16(position, i), FromFloat(k[i]));
    store(v_out, v_index_16(position, i, head_dim), FromFloat(v[i]));
  }
}

}  // namespace

void append_kv(const device::KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
               const device::KvSlot* slots) {
  const device::KvShape& shape = pool.layout.shape();
  const auto append = shape.type == DType::kF32   ? append_f32
                      : shape.type == DType::kF16 ? append_16<tensor::f32_to_f16>
                                                  : append_16<tensor::f32_to_bf16>;
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
