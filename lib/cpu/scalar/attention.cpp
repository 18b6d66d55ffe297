// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/attention_kernel.h"
#include "cpu/kv_order.h"
#include "cpu/scalar/exp.h"
#include "tensor/dtype.h"

namespace incipit::cpu::scalar {
namespace {

using device::kBlockTokens;
using tensor::DType;

template <class T>
T load(const std::byte* base, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, base + index * sizeof(T), sizeof(T));
  return value;
}

/// Reads one element of a block's K or V.
template <DType kType>
struct Kv {
  static float widen(std::uint16_t bits) noexcept {
    return kType == DType::kF16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
  }
  static float k(const std::byte* block, std::size_t position, std::size_t dim) noexcept {
    if constexpr (kType == DType::kF32) return load<float>(block, k_index_f32(position, dim));
    return widen(load<std::uint16_t>(block, k_index_16(position, dim)));
  }
  static float v(const std::byte* block, std::size_t position, std::size_t dim,
                 std::size_t head_dim) noexcept {
    if constexpr (kType == DType::kF32) {
      return load<float>(block, v_index_f32(position, dim, head_dim));
    }
    return widen(load<std::uint16_t>(block, v_index_16(position, dim, head_dim)));
  }
};

void pack_queries(const float* const* rows, std::uint32_t count, std::size_t head_dim,
                  const ScoreParams& score, std::byte* out) {
  for (std::uint32_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < head_dim; ++i) {
      const float scaled = rows[row][i] * score.scale;
      std::memcpy(out + (row * head_dim + i) * sizeof(float), &scaled, sizeof(float));
    }
  }
}

/// tanh by exp of a negative number; its absolute error is that of 1 - exp.
float tanh(float x) noexcept {
  const float e = exp(-2.0f * std::abs(x));
  return std::copysign((1.0f - e) / (1.0f + e), x);
}

template <DType kType>
float score_of(const AttentionTile& tile, std::uint32_t row, std::uint32_t key) noexcept {
  const std::byte* const block = (*tile.k)[key / kBlockTokens];
  float score = 0.0f;
  for (std::size_t i = 0; i < tile.head_dim; ++i) {
    score +=
        load<float>(tile.q, row * tile.head_dim + i) * Kv<kType>::k(block, key % kBlockTokens, i);
  }
  const float cap = tile.score.soft_cap;
  if (cap > 0.0f) score = cap * tanh(score / cap);
  if (tile.score.alibi) {
    score += tile.slope[row] * (tile.distance[row] + static_cast<float>(key));
  }
  return score;
}

template <DType kType>
void segment_row(const AttentionTile& tile, std::uint32_t row, float* scores,
                 const AttentionStates& out) {
  const std::uint32_t begin = tile.key_begin[row], end = tile.key_end[row];
  out.sum[row] = 0.0f;
  if (begin >= end) return;

  float max = -std::numeric_limits<float>::infinity();
  for (std::uint32_t key = begin; key < end; ++key) {
    scores[key] = score_of<kType>(tile, row, key);
    max = std::max(max, scores[key]);
  }
  float* const acc = out.acc + row * tile.head_dim;
  std::fill_n(acc, tile.head_dim, 0.0f);
  float sum = 0.0f;
  for (std::uint32_t key = begin; key < end; ++key) {
    const float p = exp(scores[key] - max);
    sum += p;
    const std::byte* const block = (*tile.v)[key / kBlockTokens];
    for (std::size_t i = 0; i < tile.head_dim; ++i) {
      acc[i] += p * Kv<kType>::v(block, key % kBlockTokens, i, tile.head_dim);
    }
  }
  out.max[row] = max;
  out.sum[row] = sum;
}

template <DType kType>
void segment(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out) {
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    segment_row<kType>(tile, row, buffers.scores[row], out);
  }
}

void fold(const AttentionStates& next, std::uint32_t rows, std::size_t head_dim,
          const AttentionStates& states) {
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (next.sum[row] == 0.0f) continue;
    const float* const add = next.acc + row * head_dim;
    float* const acc = states.acc + row * head_dim;
    if (states.sum[row] == 0.0f) {
      states.max[row] = next.max[row];
      states.sum[row] = next.sum[row];
      std::copy_n(add, head_dim, acc);
      continue;
    }
    const float max = std::max(states.max[row], next.max[row]);
    const float keep = exp(states.max[row] - max), take = exp(next.max[row] - max);
    states.max[row] = max;
    states.sum[row] = states.sum[row] * keep + next.sum[row] * take;
    for (std::size_t i = 0; i < head_dim; ++i) acc[i] = acc[i] * keep + add[i] * take;
  }
}

void finish(const float* acc, float sum, std::size_t head_dim, float* out) {
  for (std::size_t i = 0; i < head_dim; ++i) out[i] = acc[i] / sum;
}

template <DType kType>
constexpr AttentionKernel kKernel = {kMaxTileRows, pack_queries, segment<kType>, fold,
                                     finish,       nullptr,      nullptr};

}  // namespace
}  // namespace incipit::cpu::scalar

namespace incipit::cpu {

const AttentionKernel& scalar_attention_kernel(tensor::DType kv_type) noexcept {
  using tensor::DType;
  return kv_type == DType::kF32   ? scalar::kKernel<DType::kF32>
         : kv_type == DType::kF16 ? scalar::kKernel<DType::kF16>
                                  : scalar::kKernel<DType::kBF16>;
}

}  // namespace incipit::cpu
