// SPDX-License-Identifier: Apache-2.0
#include "base/target.h"

#if INCIPIT_CPU_X86

#include <cstring>
#include <limits>
#include <utility>

#include "cpu/attention_kernel.h"
#include "cpu/simd_avx512.h"

// Attention by BF16 dot products: one lane of an instruction multiplies and adds two neighbouring
// dimensions (scores) or two neighbouring positions (outputs). Queries and weights are rounded to
// BF16, and the sum is that of the rounded weights, so that a row's weights add up to one. Scores
// are measured in powers of two. Integers of int8 KV are exact in BF16; the scales of values are
// multiplied into the weights before these are rounded, and the sum is that of the weights without
// scales and rounding.

namespace incipit::cpu::avx512 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512_BF16)
namespace {

constexpr std::uint32_t kTileRows = 8;

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

// How K and V are read: in lines of 16 pairs, as they lie in a block.
struct KvBf16 {
  static constexpr std::size_t kLineBytes = 64;
  static constexpr bool kScaled = false;
  static __m512i line(const std::byte* p) { return _mm512_loadu_si512(p); }
};
struct KvScaledBf16 : KvBf16 {
  static constexpr bool kScaled = true;
};
struct KvInt8 {
  static constexpr std::size_t kLineBytes = 32;
  static constexpr bool kScaled = true;
  static __m512i line(const std::byte* p) {
    const auto* const bytes = reinterpret_cast<const __m128i*>(p);
    const __m512i lo = _mm512_cvtepi8_epi32(_mm_loadu_si128(bytes));
    const __m512i hi = _mm512_cvtepi8_epi32(_mm_loadu_si128(bytes + 1));
    return reinterpret_cast<__m512i>(
        _mm512_cvtne2ps_pbh(_mm512_cvtepi32_ps(hi), _mm512_cvtepi32_ps(lo)));
  }
};

/// The 16 scales of a block.
template <class Kv>
inline F16x scales(const std::byte* block, std::size_t head_dim) {
  return {_mm512_loadu_ps(block + head_dim / 2 * Kv::kLineBytes)};
}

/// The rows of a tile are taken in two halves, and the exponentials of one are computed between the
/// dot products of the other: those have the multipliers for themselves else.
constexpr std::uint32_t first_half(std::uint32_t rows) { return rows <= 4 ? rows : (rows + 1) / 2; }

/// [halves][head_dim / 2, rows of the half, 2]: what dot_blocks reads lies in the order in which it
/// does.
void pack_queries(const float* const* rows, std::uint32_t count, std::size_t head_dim,
                  const ScoreParams& score, std::byte* out) {
  const F16x factor = set1(query_factor(score));
  for (std::uint32_t row = 0; row < count; ++row) {
    const std::uint32_t split = first_half(count);
    const std::uint32_t begin = row < split ? 0 : split, size = row < split ? split : count - split;
    std::byte* const half = out + begin * head_dim * sizeof(std::uint16_t);
    for (std::size_t i = 0; i < head_dim; i += 16) {
      std::uint32_t pairs[8];
      const __m512 scaled = mul(load(rows[row] + i), factor).v;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(pairs),
                          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(scaled)));
      for (std::size_t j = 0; j < 8; ++j) {
        std::memcpy(half + ((i / 2 + j) * size + row - begin) * sizeof(pairs[j]), &pairs[j],
                    sizeof(pairs[j]));
      }
    }
  }
}

/// What is done between dot products: nothing.
struct Nothing {
  void step() {}
  void finish() {}
};

/// 2^x for x <= 0, for what will be rounded to BF16: exactly 1 at 0, exactly 0 from -256 on, a
/// relative error of 2^-12 between, NaN of NaN. With n = x rounded to sixteenths and r = x - n:
/// 2^(n's fraction), by table, times 1 + r ln 2, times 2^(n's whole). That is one multiplication:
/// dot products leave the multipliers no time, but all other units.
class RoughPower {
 public:
  RoughPower()
      : powers_(_mm512_loadu_ps(kPowers)),
        slopes_(_mm512_mul_ps(_mm512_loadu_ps(kPowers), _mm512_set1_ps(kLn2))) {}

  F16x operator()(F16x x) const {
    const F16x shift = set1(786432.0f);  // 1.5 * 2^19: leaves four bits for a fraction
    x = max(set1(-256.0f), x);
    const F16x shifted = add(x, shift);
    const F16x n = sub(shifted, shift);
    const __m512i fraction = _mm512_castps_si512(shifted.v);  // in the four lowest bits
    const F16x power = {_mm512_permutexvar_ps(fraction, powers_)};
    const F16x slope = {_mm512_permutexvar_ps(fraction, slopes_)};
    return {_mm512_scalef_ps(fma(slope, sub(x, n), power).v, n.v)};
  }

 private:
  static constexpr float kPowers[16] = {
      1.0f,          1.0442737824f, 1.0905077327f, 1.1387886348f, 1.1892071150f, 1.2418578121f,
      1.2968395547f, 1.3542555469f, 1.4142135624f, 1.4768261459f, 1.5422108254f, 1.6104903319f,
      1.6817928305f, 1.7562521604f, 1.8340080864f, 1.9152065614f};  // 2^(i / 16)
  static constexpr float kLn2 = 0.69314718f;

  __m512 powers_, slopes_;
};

/// The largest dot product of each row of a tile, lane by lane.
struct Largest {
  F16x of_row[kTileRows];
};

/// Softmax of rows [begin, end) of a tile but for the division, in steps of 32 keys: turns scores
/// into what values are multiplied by, in BF16.
template <class Kv>
class Weighing {
 public:
  Weighing(const AttentionTile& tile, TileBuffers& buffers, const Largest& largest,
           const AttentionStates& out, std::uint32_t begin, std::uint32_t end)
      : tile_(tile), buffers_(buffers), out_(out) {
    for (std::uint32_t row = begin; row < end; ++row) {
      out.sum[row] = 0.0f;
      if (tile.key_end[row] == 0) continue;
      if (score_row<kStep>(tile, row, buffers.scores[row]) || !sees_all(row)) {
        out.max[row] = largest_score(buffers.scores[row], Steps<kStep>(tile, row));
      } else {
        out.max[row] = reduce_max(largest.of_row[row]);
      }
      rows_[count_++] = row;
    }
    start_row();
  }

  /// Inlined: a call would move all sums of the dot products around it to memory and back.
  [[gnu::always_inline]] void step() {
    if (at_ == count_) return;
    F16x lo = power_(sub(load(scores_ + key_), set1(largest_)));
    F16x hi = power_(sub(load(scores_ + key_ + 16), set1(largest_)));
    if constexpr (Kv::kScaled) {
      sum_ = add(sum_, add(lo, hi));
      lo = mul(lo, scales<Kv>((*tile_.v)[key_ / 16], tile_.head_dim));
      hi = mul(hi, scales<Kv>((*tile_.v)[key_ / 16 + 1], tile_.head_dim));
    }
    const __m512i p = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(hi.v, lo.v));
    _mm512_storeu_si512(weights_ + key_, p);
    if constexpr (!Kv::kScaled) sum_ = add(sum_, sum_of_pairs(p));
    key_ += kStep;
    if (key_ < last_) return;
    out_.sum[rows_[at_++]] = reduce_add(sum_);
    start_row();
  }

  [[gnu::always_inline]] void finish() {
    while (at_ < count_) step();
  }

 private:
  static constexpr std::uint32_t kStep = 32;

  bool sees_all(std::uint32_t row) const {
    return tile_.key_begin[row] == 0 && tile_.key_end[row] == kSegmentTokens;
  }

  static F16x sum_of_pairs(__m512i p) {
    const F16x even = {_mm512_castsi512_ps(_mm512_slli_epi32(p, 16))};
    const F16x odd = {_mm512_castsi512_ps(_mm512_and_si512(p, _mm512_set1_epi32(-0x10000)))};
    return add(even, odd);
  }

  [[gnu::always_inline]] void start_row() {
    if (at_ == count_) return;
    const std::uint32_t row = rows_[at_];
    const Steps<kStep> steps(tile_, row);
    scores_ = buffers_.scores[row];
    weights_ = buffers_.weights[row];
    largest_ = out_.max[row];
    key_ = steps.first;
    last_ = steps.last;
    sum_ = zero();
  }

  const AttentionTile& tile_;
  TileBuffers& buffers_;
  const AttentionStates& out_;
  const RoughPower power_ = {};
  std::uint32_t count_ = 0, at_ = 0;  // of rows_
  std::uint32_t rows_[kTileRows];
  // The row at work.
  const float* scores_ = nullptr;
  std::uint16_t* weights_ = nullptr;
  std::uint32_t key_ = 0, last_ = 0;
  float largest_ = 0.0f;
  F16x sum_;
};

constexpr std::uint32_t kBlocksAtOnce = 4;
constexpr std::size_t kVectorsAtOnce = 4;
constexpr std::size_t kLinesPerStep = 4;  // of dot products between two steps of other work

/// Asks for `lines` lines of K or V from `line` on.
template <class Kv>
inline void fetch_lines(const std::byte* block, std::size_t line, std::size_t lines) {
  for (std::size_t at = line * Kv::kLineBytes; at < (line + lines) * Kv::kLineBytes; at += 64) {
    __builtin_prefetch(block + at, 0, 2);
  }
}

/// Dot products of R queries and the keys of kBlocksAtOnce blocks.
template <class Kv, std::size_t R, class Between>
inline void dot_blocks(const std::uint16_t* q, const std::byte* const* k,
                       const std::byte* const* ahead, std::size_t head_dim, float* scores,
                       F16x* largest, Between& between) {
  constexpr std::uint32_t kB = kBlocksAtOnce;
  __m512 sum[R][kB];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < kB; ++b) sum[r][b] = _mm512_setzero_ps();
  }
  for (std::size_t first = 0; first < head_dim / 2; first += kLinesPerStep) {
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < kB; ++b) {
      if (ahead != nullptr) fetch_lines<Kv>(ahead[b], first, kLinesPerStep);
    }
    INCIPIT_UNROLL
    for (std::size_t line = first; line < first + kLinesPerStep; ++line, q += 2 * R) {
      __m512i keys[kB];
      INCIPIT_UNROLL
      for (std::size_t b = 0; b < kB; ++b) keys[b] = Kv::line(k[b] + line * Kv::kLineBytes);
      INCIPIT_UNROLL
      for (std::size_t r = 0; r < R; ++r) {
        const __m512i x = repeat_pair(q + 2 * r);
        INCIPIT_UNROLL
        for (std::size_t b = 0; b < kB; ++b) sum[r][b] = dot_pairs(sum[r][b], x, keys[b]);
      }
    }
    between.step();
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t b = 0; b < kB; ++b) {
      F16x score = {sum[r][b]};
      if constexpr (Kv::kScaled) score = mul(score, scales<Kv>(k[b], head_dim));
      store(scores + r * kSegmentTokens + b * 16, score);
      largest[r] = max(largest[r], score);
    }
  }
}

/// acc += p_j v_j over whole pairs of keys, for R rows and N vectors of dimensions from `dim` on.
template <class Kv, std::size_t R, std::size_t N, class Between>
inline void add_values(const AttentionTile& tile, const std::uint16_t* p, const KeyRange& range,
                       std::size_t dim, float* acc, Between& between) {
  const bool starts = range.pair_begin == 0;  // at zero: no edge came before
  const std::size_t head_dim = tile.head_dim;
  const bool fetches = tile.fetch_with_v != tile.v;
  __m512 sum[R][N];
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      sum[r][n] = starts ? _mm512_setzero_ps() : _mm512_loadu_ps(acc + r * head_dim + dim + 16 * n);
    }
  }
  for (std::uint32_t pair = range.pair_begin; pair < range.pair_end; ++pair) {
    const std::size_t from = (pair % 8 * head_dim + dim) / 16 * Kv::kLineBytes;
    const std::byte* const block = (*tile.v)[pair / 8] + from;
    if (fetches) fetch_lines<Kv>((*tile.fetch_with_v)[pair / 8] + from, 0, N);
    __m512i values[N];
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) values[n] = Kv::line(block + n * Kv::kLineBytes);
    INCIPIT_UNROLL
    for (std::size_t r = 0; r < R; ++r) {
      const __m512i x = repeat_pair(p + r * kSegmentTokens + 2 * pair);
      INCIPIT_UNROLL
      for (std::size_t n = 0; n < N; ++n) sum[r][n] = dot_pairs(sum[r][n], x, values[n]);
    }
    if (pair % kLinesPerStep == kLinesPerStep - 1) between.step();
  }
  INCIPIT_UNROLL
  for (std::size_t r = 0; r < R; ++r) {
    INCIPIT_UNROLL
    for (std::size_t n = 0; n < N; ++n) {
      _mm512_storeu_ps(acc + r * head_dim + dim + 16 * n, sum[r][n]);
    }
  }
}

/// The same for keys [begin, end) of one row; what else is in their pairs is taken as zero, and so
/// are the weights of that, which may come from scales that were never written.
template <class Kv>
inline void add_edge(const AttentionTile& tile, const std::uint16_t* p, std::uint32_t begin,
                     std::uint32_t end, float* acc) {
  for (std::size_t dim = 0; begin < end && dim < tile.head_dim; dim += 16) {
    __m512 sum = _mm512_loadu_ps(acc + dim);
    for (std::uint32_t key = begin / 2 * 2; key < end; key += 2) {
      const std::uint32_t even = key >= begin ? 0xffffu : 0, odd = key + 1 < end ? 0xffff0000u : 0;
      const std::byte* const block = (*tile.v)[key / 16];
      const __m512i values =
          Kv::line(block + (key % 16 / 2 * tile.head_dim + dim) / 16 * Kv::kLineBytes);
      const __m512i seen = _mm512_set1_epi32(static_cast<std::int32_t>(even | odd));
      __m512i x = repeat_pair(p + key);
      if constexpr (Kv::kScaled) x = _mm512_and_si512(x, seen);
      sum = dot_pairs(sum, x, _mm512_and_si512(values, seen));
    }
    _mm512_storeu_ps(acc + dim, sum);
  }
}

/// The scores of R rows, from row `first` on.
template <class Kv, std::size_t R, class Between>
inline void score_rows(const AttentionTile& tile, TileBuffers& buffers, const KeyRange& range,
                       std::uint32_t first, Largest& largest, Between& between) {
  const auto* const q =
      static_cast<const std::uint16_t*>(static_cast<const void*>(tile.q)) + first * tile.head_dim;
  for (std::size_t r = 0; r < R; ++r) {
    largest.of_row[first + r] = set1(-std::numeric_limits<float>::infinity());
  }
  const bool fetches = first == 0 && tile.fetch_with_k != tile.k;
  for (std::uint32_t block = range.first / 16 / kBlocksAtOnce * kBlocksAtOnce;
       block * 16 < range.last; block += kBlocksAtOnce) {
    const std::byte* const* const ahead = fetches ? tile.fetch_with_k->data() + block : nullptr;
    dot_blocks<Kv, R>(q, tile.k->data() + block, ahead, tile.head_dim,
                      buffers.scores[first] + block * 16, largest.of_row + first, between);
  }
  between.finish();
}

/// The outputs of R rows, from row `first` on.
template <class Kv, std::size_t R, class Between>
inline void value_rows(const AttentionTile& tile, const TileBuffers& buffers, const KeyRange& range,
                       std::uint32_t first, const AttentionStates& out, Between& between) {
  for (std::uint32_t row = first; range.pair_begin > 0 && row < first + R; ++row) {
    float* const acc = out.acc + row * tile.head_dim;
    for (std::size_t i = 0; i < tile.head_dim; i += 16) store(acc + i, zero());
    add_edge<Kv>(tile, buffers.weights[row], tile.key_begin[row],
                 range.before_end(tile.key_end[row]), acc);
  }
  const std::uint16_t* const p = buffers.weights[first];
  float* const acc = out.acc + first * tile.head_dim;
  std::size_t dim = 0;
  for (; dim + 16 * kVectorsAtOnce <= tile.head_dim; dim += 16 * kVectorsAtOnce) {
    add_values<Kv, R, kVectorsAtOnce>(tile, p, range, dim, acc, between);
  }
  for (; dim + 32 <= tile.head_dim; dim += 32) {
    add_values<Kv, R, 2>(tile, p, range, dim, acc, between);
  }
  if (dim < tile.head_dim) add_values<Kv, R, 1>(tile, p, range, dim, acc, between);
  for (std::uint32_t row = first; row < first + R; ++row) {
    add_edge<Kv>(tile, buffers.weights[row], range.behind_begin(), tile.key_end[row],
                 out.acc + row * tile.head_dim);
  }
  between.finish();
}

template <class Kv, std::uint32_t kRows>
inline void segment_of(const AttentionTile& tile, TileBuffers& buffers,
                       const AttentionStates& out) {
  constexpr std::uint32_t kFirst = first_half(kRows), kSecond = kRows - kFirst;
  const KeyRange range(tile);
  Nothing nothing;
  Largest largest;
  score_rows<Kv, kFirst>(tile, buffers, range, 0, largest, nothing);
  Weighing<Kv> first(tile, buffers, largest, out, 0, kFirst);
  if constexpr (kSecond == 0) {
    first.finish();
    value_rows<Kv, kFirst>(tile, buffers, range, 0, out, nothing);
  } else {
    score_rows<Kv, kSecond>(tile, buffers, range, kFirst, largest, first);
    Weighing<Kv> second(tile, buffers, largest, out, kFirst, kRows);
    value_rows<Kv, kFirst>(tile, buffers, range, 0, out, second);
    value_rows<Kv, kSecond>(tile, buffers, range, kFirst, out, nothing);
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
void segment(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out) {
  segment_of_rows<Kv>(tile, buffers, out, std::make_index_sequence<kTileRows>());
}

/// Integers to BF16, in the same order.
void widen_int8(const WideCopy& copy) {
  const auto widen = [&copy](const SegmentPointers& from, const SegmentPointers& next,
                             std::byte* out) {
    const std::size_t lines = copy.head_dim / 2;
    for (std::uint32_t block = 0; block < kSegmentBlocks; ++block) {
      for (std::size_t line = 0; line < lines; ++line, out += KvBf16::kLineBytes) {
        _mm512_storeu_si512(out, KvInt8::line(from[block] + line * KvInt8::kLineBytes));
        __builtin_prefetch(next[block] + line * KvInt8::kLineBytes, 0, 2);
      }
      _mm512_storeu_ps(out, scales<KvInt8>(from[block], copy.head_dim).v);
      __builtin_prefetch(next[block] + lines * KvInt8::kLineBytes, 0, 2);
      out += 16 * sizeof(float);
    }
  };
  widen(*copy.k, *copy.next_k, copy.k_out);
  widen(*copy.v, *copy.next_v, copy.v_out);
}

constexpr Widening kWideInt8 = {2, sizeof(std::uint16_t), widen_int8, segment<KvScaledBf16>};

constexpr AttentionKernel kBf16Kernel = {kTileRows,   pack_queries, segment<KvBf16>,
                                         fold_states, finish_row,   nullptr};
constexpr AttentionKernel kInt8Kernel = {kTileRows,   pack_queries, segment<KvInt8>,
                                         fold_states, finish_row,   &kWideInt8};

}  // namespace
INCIPIT_TARGET_END

const AttentionKernel& bf16_attention_kernel(device::KvFormat format) noexcept {
  return format == device::KvFormat::kInt8 ? kInt8Kernel : kBf16Kernel;
}

}  // namespace incipit::cpu::avx512

#endif  // INCIPIT_CPU_X86
