// SPDX-License-Identifier: Apache-2.0
#include "cpu/target.h"

#if INCIPIT_CPU_X86

#include <cstring>
#include <limits>
#include <utility>

#include "cpu/attention_kernel.h"
#include "cpu/simd_avx512.h"

// Attention by BF16 dot products: one lane of an instruction multiplies and adds two neighbouring
// dimensions (scores) or two neighbouring positions (outputs). Queries and weights are rounded to
// BF16, and the sum is that of the rounded weights, so that a row's weights add up to one. Scores
// are measured in powers of two.

namespace incipit::cpu::avx512 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512_BF16)
namespace {

constexpr std::uint32_t kTileRows = 8;
constexpr std::size_t kLineBytes = 64;

inline F16x add_to_exponent(F16x p, F16x n) {
  const __m512i exponent = _mm512_slli_epi32(_mm512_castps_si512(n.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p.v), exponent))};
}

#include "cpu/attention_softmax.inl.h"

inline __m512 dot_pairs(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

/// The pair of neighbours at p in every lane.
inline __m512i repeat_pair(const std::uint16_t* p) {
  std::int32_t pair;
  std::memcpy(&pair, p, sizeof(pair));
  return _mm512_set1_epi32(pair);
}

/// [head_dim / 2, count, 2]: what dot_blocks reads lies in the order in which it does.
void pack_queries(const float* const* rows, std::uint32_t count, std::size_t head_dim,
                  const ScoreParams& score, std::byte* out) {
  const F16x factor = set1(query_factor(score));
  for (std::uint32_t row = 0; row < count; ++row) {
    for (std::size_t i = 0; i < head_dim; i += 16) {
      std::uint32_t pairs[8];
      const __m512 scaled = mul(load(rows[row] + i), factor).v;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs),
                          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(scaled)));
      for (std::size_t j = 0; j < 8; ++j) {
        std::memcpy(out + ((i / 2 + j) * count + row) * sizeof(pairs[j]), &pairs[j],
                    sizeof(pairs[j]));
      }
    }
  }
}

/// Dot products of R queries and the keys of B blocks.
template <std::size_t R, std::size_t B>
inline void dot_blocks(const std::uint16_t* q, const std::byte* const* k,
                       const std::byte* const* ahead, std::size_t head_dim, float* scores) {
  __m512 sum[R][B];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < B; ++b) sum[r][b] = _mm512_setzero_ps();
  }
  for (std::size_t line = 0; line < head_dim / 2; ++line, q += 2 * R) {
    __m512i keys[B];
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < B; ++b) {
      keys[b] = _mm512_loadu_si512(k[b] + line * kLineBytes);
      __builtin_prefetch(ahead[b] + line * kLineBytes, 0, 2);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const __m512i x = repeat_pair(q + 2 * r);
      INCIPIT_UNROLL
      for (std::size_t b = 0; b < B; ++b) sum[r][b] = dot_pairs(sum[r][b], x, keys[b]);
    }
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < B; ++b) {
      _mm512_storeu_ps(scores + r * kSegmentTokens + b * 16, sum[r][b]);
    }
  }
}

/// Turns one row's scores into BF16 weights.
inline float weigh_row(TileBuffers& buffers, std::uint32_t row, const Steps<32>& steps,
                       float largest) {
  const float* const scores = buffers.scores[row];
  std::uint16_t* const weights = buffers.weights[row];
  const __m512i ones = _mm512_set1_epi32(0x3f803f80);
  __m512 sum = _mm512_setzero_ps();
  for (std::uint32_t key = steps.first; key < steps.last; key += 32) {
    const F16x lo = power_of_two<4>(sub(load(scores + key), set1(largest)));
    const F16x hi = power_of_two<4>(sub(load(scores + key + 16), set1(largest)));
    const __m512i p = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(hi.v, lo.v));
    _mm512_storeu_si512(weights + key, p);
    sum = dot_pairs(sum, p, ones);
  }
  return reduce_add({sum});
}

/// acc += p_j v_j over whole pairs of keys, for R rows and N vectors of dimensions from `dim` on.
template <std::size_t R, std::size_t N>
inline void add_values(const AttentionTile& tile, const std::uint16_t* p, std::uint32_t pair_begin,
                       std::uint32_t pair_end, std::size_t dim, float* acc) {
  const std::size_t head_dim = tile.head_dim;
  __m512 sum[R][N];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      sum[r][n] = _mm512_loadu_ps(acc + r * head_dim + dim + 16 * n);
    }
  }
  for (std::uint32_t pair = pair_begin; pair < pair_end; ++pair) {
    const std::size_t from = (pair % 8 * head_dim + dim) * 4;
    const std::byte* const block = (*tile.v)[pair / 8] + from;
    const std::byte* const ahead = (*tile.fetch_with_v)[pair / 8] + from;
    __m512i values[N];
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      values[n] = _mm512_loadu_si512(block + n * kLineBytes);
      __builtin_prefetch(ahead + n * kLineBytes, 0, 2);
    }
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const __m512i x = repeat_pair(p + r * kSegmentTokens + 2 * pair);
      INCIPIT_UNROLL
      for (std::size_t n = 0; n < N; ++n) sum[r][n] = dot_pairs(sum[r][n], x, values[n]);
    }
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      _mm512_storeu_ps(acc + r * head_dim + dim + 16 * n, sum[r][n]);
    }
  }
}

/// The same for keys [begin, end) of one row; what else is in their pairs is taken as zero.
inline void add_edge(const AttentionTile& tile, const std::uint16_t* p, std::uint32_t begin,
                     std::uint32_t end, float* acc) {
  for (std::size_t dim = 0; begin < end && dim < tile.head_dim; dim += 16) {
    __m512 sum = _mm512_loadu_ps(acc + dim);
    for (std::uint32_t key = begin / 2 * 2; key < end; key += 2) {
      const std::uint32_t even = key >= begin ? 0xffffu : 0, odd = key + 1 < end ? 0xffff0000u : 0;
      const std::byte* const block = (*tile.v)[key / 16];
      const __m512i values = _mm512_loadu_si512(block + (key % 16 / 2 * tile.head_dim + dim) * 4);
      const __m512i seen = _mm512_set1_epi32(static_cast<std::int32_t>(even | odd));
      sum = dot_pairs(sum, repeat_pair(p + key), _mm512_and_si512(values, seen));
    }
    _mm512_storeu_ps(acc + dim, sum);
  }
}

template <std::size_t R, std::size_t N>
inline std::size_t add_vectors(const AttentionTile& tile, const std::uint16_t* p,
                               const KeyRange& range, std::size_t dim, float* acc) {
  for (; dim + 16 * N <= tile.head_dim; dim += 16 * N) {
    add_values<R, N>(tile, p, range.pair_begin, range.pair_end, dim, acc);
  }
  return dim;
}

template <std::size_t R>
inline void segment_of(const AttentionTile& tile, TileBuffers& buffers,
                       const AttentionStates& out) {
  // With few rows, more keys or dimensions side by side keep the multipliers busy.
  constexpr std::uint32_t kBlocks = R <= 3 ? 4 : 2;
  constexpr std::size_t kVectors = R <= 3 ? 4 : 2;
  const KeyRange range(tile);
  const std::uint16_t* const q =
      static_cast<const std::uint16_t*>(static_cast<const void*>(tile.q));
  for (std::uint32_t block = range.first / 16 / kBlocks * kBlocks; block * 16 < range.last;
       block += kBlocks) {
    dot_blocks<R, kBlocks>(q, tile.k->data() + block, tile.fetch_with_k->data() + block,
                           tile.head_dim, buffers.scores[0] + block * 16);
  }
  weigh_rows<32, weigh_row>(tile, buffers, out);
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    float* const acc = out.acc + row * tile.head_dim;
    for (std::size_t i = 0; i < tile.head_dim; i += 16) store(acc + i, zero());
    add_edge(tile, buffers.weights[row], tile.key_begin[row], range.before_end(tile.key_end[row]),
             acc);
  }
  const std::uint16_t* const p = buffers.weights[0];
  std::size_t dim = add_vectors<R, kVectors>(tile, p, range, 0, out.acc);
  if constexpr (kVectors > 2) dim = add_vectors<R, 2>(tile, p, range, dim, out.acc);
  add_vectors<R, 1>(tile, p, range, dim, out.acc);
  for (std::uint32_t row = 0; row < tile.rows; ++row) {
    add_edge(tile, buffers.weights[row], range.behind_begin(), tile.key_end[row],
             out.acc + row * tile.head_dim);
  }
}

template <std::size_t... kLess>
inline void segment_of_rows(const AttentionTile& tile, TileBuffers& buffers,
                            const AttentionStates& out, std::index_sequence<kLess...>) {
  using Function = void (*)(const AttentionTile&, TileBuffers&, const AttentionStates&);
  static constexpr Function kOfRows[] = {segment_of<kLess + 1>...};
  kOfRows[tile.rows - 1](tile, buffers, out);
}

void segment(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out) {
  segment_of_rows(tile, buffers, out, std::make_index_sequence<kTileRows>());
}

constexpr AttentionKernel kBf16DotKernel = {kTileRows,  pack_queries, segment, fold_states,
                                            finish_row, nullptr,      nullptr};

}  // namespace
INCIPIT_TARGET_END

const AttentionKernel& bf16_attention_kernel() noexcept { return kBf16DotKernel; }

}  // namespace incipit::cpu::avx512

#endif  // INCIPIT_CPU_X86
