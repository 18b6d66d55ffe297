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
using device::KvFormat;

template <class T>
T load(const std::byte* base, std::size_t index) noexcept {
  T value;
  std::memcpy(&value, base + index * sizeof(T), sizeof(T));
  return value;
}

/// Reads one element of a block's K or V; of int8 the integer.
template <KvFormat kFormat>
struct Kv {
  static float value(const std::byte* block, std::size_t index) noexcept {
    if constexpr (kFormat == KvFormat::kF32) return load<float>(block, index);
    if constexpr (kFormat == KvFormat::kInt8) {
      return static_cast<float>(load<std::int8_t>(block, index));
    }
    const auto bits = load<std::uint16_t>(block, index);
    return kFormat == KvFormat::kF16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
  }
  static float k(const std::byte* block, std::size_t position, std::size_t dim) noexcept {
    return value(block, kFormat == KvFormat::kF32 ? k_index_f32(position, dim)
                                                  : k_index_pairs(position, dim));
  }
  static float v(const std::byte* block, std::size_t position, std::size_t dim,
                 std::size_t head_dim) noexcept {
    return value(block, kFormat == KvFormat::kF32 ? v_index_f32(position, dim, head_dim)
                                                  : v_index_pairs(position, dim, head_dim));
  }
  /// What the integers of a position count for.
  static float scale(const std::byte* block, std::size_t position, std::size_t head_dim) noexcept {
    if constexpr (kFormat != KvFormat::kInt8) return 1.0f;
    return load<float>(block + kBlockTokens * head_dim, position);
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

template <KvFormat kFormat>
float score_of(const AttentionTile& tile, std::uint32_t row, std::uint32_t key) noexcept {
  const std::byte* const block = (*tile.k)[key / kBlockTokens];
  float score = 0.0f;
  for (std::size_t i = 0; i < tile.head_dim; ++i) {
    score +=
        load<float>(tile.q, row * tile.head_dim + i) * Kv<kFormat>::k(block, key % kBlockTokens, i);
  }
  score *= Kv<kFormat>::scale(block, key % kBlockTokens, tile.head_dim);
  const float cap = tile.score.soft_cap;
  if (cap > 0.0f) score = cap * tanh(score / cap);
  if (tile.score.alibi) {
    score += tile.slope[row] * (tile.distance[row] + static_cast<float>(key));
  }
  return score;
}

template <KvFormat kFormat>
void segment_row(const AttentionTile& tile, std::uint32_t row, float* scores,
                 const AttentionStates& out) {
  const std::uint32_t begin = tile.key_begin[row], end = tile.key_end[row];
  out.sum[row] = 0.0f;
  if (begin >= end) return;

  float max = -std::numeric_limits<float>::infinity();
  for (std::uint32_t key = begin; key < end; ++key) {
    scores[key] = score_of<kFormat>(tile, row, key);
    max = std::max(max, scores[key]);
  }
  float* const acc = out.acc + row * tile.head_dim;
  std::fill_n(acc, tile.head_dim, 0.0f);
  float sum = 0.0f;
  for (std::uint32_t key = begin; key < end; ++key) {
    const float p = exp(scores[key] - max);
    sum += p;
    const std::byte* const block = (*tile.v)[key / kBlockTokens];
    const float weight = p * Kv<kFormat>::scale(block, key % kBlockTokens, tile.head_dim);
    for (std::size_t i = 0; i < tile.head_dim; ++i) {
      acc[i] += weight * Kv<kFormat>::v(block, key % kBlockTokens, i, tile.head_dim);
    }
  }
  out.max[row] = max;
  out.sum[row] = sum;
}

template <KvFormat kFormat>
void segment(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out) {
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    segment_row<kFormat>(tile, row, buffers.scores[row], out);
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

template <KvFormat kFormat>
constexpr AttentionKernel kKernel = {kMaxTileRows, pack_queries, segment<kFormat>,
                                     fold,         finish,       nullptr};

}  // namespace
}  // namespace incipit::cpu::scalar

namespace incipit::cpu {

const AttentionKernel& scalar_attention_kernel(device::KvFormat format) noexcept {
  using device::KvFormat;
  return format == KvFormat::kF32    ? scalar::kKernel<KvFormat::kF32>
         : format == KvFormat::kF16  ? scalar::kKernel<KvFormat::kF16>
         : format == KvFormat::kBF16 ? scalar::kKernel<KvFormat::kBF16>
                                     : scalar::kKernel<KvFormat::kInt8>;
}

}  // namespace incipit::cpu
