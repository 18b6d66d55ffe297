// SPDX-License-Identifier: Apache-2.0
// Included by attention_avx2.cpp and attention_avx512.cpp inside their regions: the kernels of
// float arithmetic, over sixteen lanes, with the same results on both. The including file gives
//
//   kTileRows                     query rows side by side
//   kBlocksAtOnce<R>              blocks of keys side by side for R rows
//   kVectorsAtOnce<R>             vectors of 16 output dimensions side by side for R rows
//   split_f16, split_bf16,        32 interleaved values -> the 16 even ones, the 16 odd ones
//   split_int8

#include "cpu/attention_softmax.inl.h"

template <class T>
inline const T* elements(const std::byte* p) {
  return static_cast<const T*>(static_cast<const void*>(p));
}

// How K and V of one head of a block are read, two dimensions or two positions at a time.
template <bool kHasScales>
struct KvFloat {
  static constexpr std::size_t kBytes = 4;
  static constexpr bool kScaled = kHasScales;
  static void k_pair(const std::byte* block, std::size_t pair, F16x& even, F16x& odd) {
    const float* const p = elements<float>(block) + pair * 32;
    even = load(p);
    odd = load(p + 16);
  }
  static void v_pair(const std::byte* block, std::size_t pair, std::size_t head_dim,
                     std::size_t dim, F16x& even, F16x& odd) {
    const float* const p = elements<float>(block) + pair * 2 * head_dim + dim;
    even = load(p);
    odd = load(p + head_dim);
  }
};

template <class T, void (*Split)(const T*, F16x&, F16x&)>
struct KvPairs {
  static constexpr std::size_t kBytes = sizeof(T);
  static constexpr bool kScaled = sizeof(T) == 1;
  static void k_pair(const std::byte* block, std::size_t pair, F16x& even, F16x& odd) {
    Split(elements<T>(block) + pair * 32, even, odd);
  }
  static void v_pair(const std::byte* block, std::size_t pair, std::size_t head_dim,
                     std::size_t dim, F16x& even, F16x& odd) {
    Split(elements<T>(block) + 2 * (pair * head_dim + dim), even, odd);
  }
};

using KvF32 = KvFloat<false>;
using KvScaledF32 = KvFloat<true>;
using KvF16 = KvPairs<std::uint16_t, split_f16>;
using KvBf16 = KvPairs<std::uint16_t, split_bf16>;
using KvInt8 = KvPairs<std::int8_t, split_int8>;

/// The 16 scales of a block.
template <class Kv>
inline F16x scales(const std::byte* block, std::size_t head_dim) {
  return load(elements<float>(block + 16 * head_dim * Kv::kBytes));
}

/// Asks for the bytes that lie at `offset` as 32 values of K or V do.
template <class Kv>
inline void fetch(const std::byte* base, std::size_t offset) {
  __builtin_prefetch(base + offset, 0, 2);
  if constexpr (Kv::kBytes == 4) __builtin_prefetch(base + offset + 64, 0, 2);
}

/// Dot products of R queries and the keys of B blocks.
template <class Kv, std::size_t R, std::size_t B>
inline void dot_blocks(const float* q, const std::byte* const* k, const std::byte* const* ahead,
                       std::size_t head_dim, float* scores) {
  F16x sum[R][B];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < B; ++b) sum[r][b] = zero();
  }
  for (std::size_t pair = 0; pair < head_dim / 2; ++pair, q += 2 * R) {
    F16x even[B], odd[B];
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < B; ++b) {
      Kv::k_pair(k[b], pair, even[b], odd[b]);
      fetch<Kv>(ahead[b], pair * 32 * Kv::kBytes);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const F16x x = set1(q[r]);
      INCIPIT_UNROLL
      for (std::size_t b = 0; b < B; ++b) sum[r][b] = fma(x, even[b], sum[r][b]);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const F16x x = set1(q[R + r]);
      INCIPIT_UNROLL
      for (std::size_t b = 0; b < B; ++b) sum[r][b] = fma(x, odd[b], sum[r][b]);
    }
  }
  INCIPIT_UNROLL
  for (std::size_t b = 0; b < B; ++b) {
    F16x scale;
    if constexpr (Kv::kScaled) scale = scales<Kv>(k[b], head_dim);
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      if constexpr (Kv::kScaled) sum[r][b] = mul(sum[r][b], scale);
      store(scores + r * kSegmentTokens + b * 16, sum[r][b]);
    }
  }
}

/// Turns one row's scores into what its values are multiplied by, in place.
template <class Kv>
inline float weigh_row(const AttentionTile& tile, TileBuffers& buffers, std::uint32_t row,
                       const Steps<16>& steps, float largest) {
  float* const scores = buffers.scores[row];
  F16x sum = zero();
  for (std::uint32_t key = steps.first; key < steps.last; key += 16) {
    const F16x p = power_of_two(sub(load(scores + key), set1(largest)));
    sum = add(sum, p);
    if constexpr (Kv::kScaled) {
      store(scores + key, mul(p, scales<Kv>((*tile.v)[key / 16], tile.head_dim)));
    } else {
      store(scores + key, p);
    }
  }
  return reduce_add(sum);
}

/// acc += p_j v_j over whole pairs of keys, for R rows and N vectors of dimensions from `dim` on.
template <class Kv, std::size_t R, std::size_t N>
inline void add_values(const AttentionTile& tile, const float* p, std::uint32_t pair_begin,
                       std::uint32_t pair_end, std::size_t dim, float* acc) {
  const std::size_t head_dim = tile.head_dim;
  F16x sum[R][N];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      sum[r][n] = load(acc + r * head_dim + dim + 16 * n);
    }
  }
  for (std::uint32_t pair = pair_begin; pair < pair_end; ++pair) {
    const std::byte* const block = (*tile.v)[pair / 8];
    const std::byte* const ahead = (*tile.fetch_with_v)[pair / 8];
    F16x even[N], odd[N];
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      const std::size_t from = dim + 16 * n;
      Kv::v_pair(block, pair % 8, head_dim, from, even[n], odd[n]);
      fetch<Kv>(ahead, 2 * (pair % 8 * head_dim + from) * Kv::kBytes);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const F16x x = set1(p[r * kSegmentTokens + 2 * pair]);
      INCIPIT_UNROLL
      for (std::size_t n = 0; n < N; ++n) sum[r][n] = fma(x, even[n], sum[r][n]);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const F16x x = set1(p[r * kSegmentTokens + 2 * pair + 1]);
      INCIPIT_UNROLL
      for (std::size_t n = 0; n < N; ++n) sum[r][n] = fma(x, odd[n], sum[r][n]);
    }
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      store(acc + r * head_dim + dim + 16 * n, sum[r][n]);
    }
  }
}

/// The same for single keys [begin, end) of one row.
template <class Kv>
inline void add_edge(const AttentionTile& tile, const float* p, std::uint32_t begin,
                     std::uint32_t end, float* acc) {
  for (std::size_t dim = 0; begin < end && dim < tile.head_dim; dim += 16) {
    F16x sum = load(acc + dim);
    for (std::uint32_t key = begin; key < end; ++key) {
      F16x even, odd;
      Kv::v_pair((*tile.v)[key / 16], key % 16 / 2, tile.head_dim, dim, even, odd);
      sum = fma(set1(p[key]), key % 2 == 0 ? even : odd, sum);
    }
    store(acc + dim, sum);
  }
}

template <class Kv, std::size_t R>
inline void segment_of(const AttentionTile& tile, TileBuffers& buffers,
                       const AttentionStates& out) {
  constexpr std::uint32_t kBlocks = kBlocksAtOnce<R>;
  constexpr std::size_t kVectors = kVectorsAtOnce<R>;
  const KeyRange range(tile);
  const float* const q = elements<float>(tile.q);
  for (std::uint32_t block = range.first / 16 / kBlocks * kBlocks; block * 16 < range.last;
       block += kBlocks) {
    dot_blocks<Kv, R, kBlocks>(q, tile.k->data() + block, tile.fetch_with_k->data() + block,
                               tile.head_dim, buffers.scores[0] + block * 16);
  }
  weigh_rows<16, weigh_row<Kv>>(tile, buffers, out);
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    float* const acc = out.acc + row * tile.head_dim;
    for (std::size_t i = 0; i < tile.head_dim; i += 16) store(acc + i, zero());
    add_edge<Kv>(tile, buffers.scores[row], tile.key_begin[row],
                 range.before_end(tile.key_end[row]), acc);
  }
  std::size_t dim = 0;
  for (; dim + 16 * kVectors <= tile.head_dim; dim += 16 * kVectors) {
    add_values<Kv, R, kVectors>(tile, buffers.scores[0], range.pair_begin, range.pair_end, dim,
                                out.acc);
  }
  for (; dim < tile.head_dim; dim += 16) {
    add_values<Kv, R, 1>(tile, buffers.scores[0], range.pair_begin, range.pair_end, dim, out.acc);
  }
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    add_edge<Kv>(tile, buffers.scores[row], range.behind_begin(), tile.key_end[row],
                 out.acc + row * tile.head_dim);
  }
}

template <class Kv, std::size_t... kLess>
inline void segment_of_rows(const AttentionTile& tile, TileBuffers& buffers,
                            const AttentionStates& out, std::index_sequence<kLess...>) {
  using Function = void (*)(const AttentionTile&, TileBuffers&, const AttentionStates&);
  static constexpr Function kOfRows[] = {segment_of<Kv, kLess + 1>...};
  kOfRows[tile.rows - 1](tile, buffers, out);
}

template <class Kv>
inline void segment(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out) {
  segment_of_rows<Kv>(tile, buffers, out, std::make_index_sequence<kTileRows>());
}

/// [head_dim, count]: what dot_blocks reads lies in the order in which it does.
inline void pack_queries(const float* const* rows, std::uint32_t count, std::size_t head_dim,
                         const ScoreParams& score, std::byte* out) {
  float* const packed = static_cast<float*>(static_cast<void*>(out));
  const float factor = query_factor(score);
  for (std::uint32_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < head_dim; ++i) packed[i * count + row] = rows[row][i] * factor;
  }
}

/// K and V of a segment in the order of F32 ones.
template <class Kv>
inline void widen(const WideCopy& copy) {
  const std::size_t head_dim = copy.head_dim, values = 16 * head_dim;
  const std::size_t stride = values + 16;  // floats of a block, scales included
  float* k_out = static_cast<float*>(static_cast<void*>(copy.k_out));
  float* v_out = static_cast<float*>(static_cast<void*>(copy.v_out));
  for (std::uint32_t block = 0; block < kSegmentBlocks; ++block, k_out += stride, v_out += stride) {
    const std::byte* const k = (*copy.k)[block];
    const std::byte* const v = (*copy.v)[block];
    F16x even, odd;
    for (std::size_t pair = 0; pair < head_dim / 2; ++pair) {
      Kv::k_pair(k, pair, even, odd);
      fetch<Kv>((*copy.next_k)[block], pair * 32 * Kv::kBytes);
      store(k_out + pair * 32, even);
      store(k_out + pair * 32 + 16, odd);
    }
    for (std::size_t i = 0; i < values; i += 32) {  // pair of positions, 16 dimensions
      const std::size_t pair = i / (2 * head_dim), dim = i % (2 * head_dim) / 2;
      Kv::v_pair(v, pair, head_dim, dim, even, odd);
      fetch<Kv>((*copy.next_v)[block], i * Kv::kBytes);
      store(v_out + 2 * pair * head_dim + dim, even);
      store(v_out + (2 * pair + 1) * head_dim + dim, odd);
    }
    if constexpr (Kv::kScaled) {
      fetch<Kv>((*copy.next_k)[block], values);
      fetch<Kv>((*copy.next_v)[block], values);
      store(k_out + values, scales<Kv>(k, head_dim));
      store(v_out + values, scales<Kv>(v, head_dim));
    }
  }
}

// Widening BF16 is two instructions; doing it beforehand gains nothing.
constexpr Widening kWideF16 = {4, sizeof(float), widen<KvF16>, segment<KvF32>};
constexpr Widening kWideInt8 = {4, sizeof(float), widen<KvInt8>, segment<KvScaledF32>};

template <class Kv, const Widening* kWidening = nullptr>
constexpr AttentionKernel kKernel = {kTileRows,   pack_queries, segment<Kv>,
                                     fold_states, finish_row,   kWidening};

const AttentionKernel& kernel_of(device::KvFormat format) noexcept {
  switch (format) {
    case device::KvFormat::kF32:
      break;
    case device::KvFormat::kF16:
      return kKernel<KvF16, &kWideF16>;
    case device::KvFormat::kBF16:
      return kKernel<KvBf16>;
    case device::KvFormat::kInt8:
      return kKernel<KvInt8, &kWideInt8>;
  }
  return kKernel<KvF32>;
}
