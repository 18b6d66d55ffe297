// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_ATTENTION_KERNEL_H_
#define INCIPIT_CPU_ATTENTION_KERNEL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "device/kv_layout.h"

// What one path computes of attention. The arithmetic of a query row over one segment, the same
// in every tile, plan and thread, is that of scalar/attention.cpp:
//
//   score_j = soft_cap(scale q . k_j) + slope (j - position)    for each key j that the row sees
//   max     = largest score_j
//   p_j     = exp(score_j - max)
//   sum     = p_j added in a fixed tree
//   acc     = p_j v_j added in ascending j, one chain per dimension
//
// With int8 KV, k_j and v_j are the integers; k_j's scale multiplies the finished dot product, and
// v_j's the weight p_j in acc (not in sum).
//
// and that of merging a segment's state into those before it is `fold`. Keys that the row does not
// see have no part in it: their K, V and scores may be anything, NaN included.

namespace incipit::cpu {

inline constexpr std::uint32_t kSegmentTokens = 256;
inline constexpr std::uint32_t kSegmentBlocks = kSegmentTokens / device::kBlockTokens;
inline constexpr std::uint32_t kMaxTileRows = 12;

/// One KV head's K or V in the blocks of a segment. Where the segment has fewer blocks, the rest
/// point to some block that may be read.
using SegmentPointers = std::array<const std::byte*, kSegmentBlocks>;

/// How dot products become scores.
struct ScoreParams {
  float scale = 1.0f;
  float soft_cap = 0.0f;  // 0: none
  bool alibi = false;
};

/// Some query rows of one KV head against the keys of one segment.
struct AttentionTile {
  std::uint32_t rows = 0;  // 1..AttentionKernel::tile_rows
  std::size_t head_dim = 0;
  const std::byte* q = nullptr;  // as pack_queries left it
  ScoreParams score = {};
  // The keys that each row sees, counted from the segment's first; end 0: none.
  std::array<std::uint32_t, kMaxTileRows> key_begin = {}, key_end = {};
  // ALiBi only: position of the segment's first key less the row's, and the row's slope.
  std::array<float, kMaxTileRows> distance = {}, slope = {};
  const SegmentPointers* k = nullptr;
  const SegmentPointers* v = nullptr;
  // What to ask of memory, line for line, while K and while V are read.
  const SegmentPointers* fetch_with_k = nullptr;
  const SegmentPointers* fetch_with_v = nullptr;
};

/// How the rows of a tile overlap. Where all rows that see any key see both keys of a pair, the
/// pair is added for all rows at once, else for each row that sees it: a row never meets a value
/// that it does not see.
struct KeyRange {
  std::uint32_t first = kSegmentTokens, last = 0;  // keys that some row sees
  // Pairs of keys that are added for all rows at once; behind the segment where there are none.
  std::uint32_t pair_begin = kSegmentTokens / 2, pair_end = kSegmentTokens / 2;

  explicit KeyRange(const AttentionTile& tile) noexcept {
    std::uint32_t begin = 0, end = kSegmentTokens;  // keys that all of these rows see
    for (std::uint32_t row = 0; row < tile.rows; ++row) {
      if (tile.key_end[row] == 0) continue;
      first = std::min(first, tile.key_begin[row]);
      last = std::max(last, tile.key_end[row]);
      begin = std::max(begin, tile.key_begin[row]);
      end = std::min(end, tile.key_end[row]);
    }
    if ((begin + 1) / 2 < end / 2) {
      pair_begin = (begin + 1) / 2;
      pair_end = end / 2;
    }
  }

  // The keys of one row before and behind those pairs: [key_begin, before_end), [behind_begin,
  // key_end).
  std::uint32_t before_end(std::uint32_t key_end) const noexcept {
    return std::min(2 * pair_begin, key_end);
  }
  std::uint32_t behind_begin() const noexcept { return 2 * pair_end; }
};

/// Where softmax over some keys stands, for some rows. A row with sum 0 has seen no key; its other
/// values mean nothing then.
struct AttentionStates {
  float* max = nullptr;  // [rows]
  float* sum = nullptr;  // [rows]
  float* acc = nullptr;  // [rows, head_dim]
};

/// Working memory of one tile.
struct alignas(64) TileBuffers {
  float scores[kMaxTileRows][kSegmentTokens];
  std::uint16_t weights[kMaxTileRows][kSegmentTokens];
};

/// A segment's K and V to be copied for `segment` of a Widening.
struct WideCopy {
  const SegmentPointers* k = nullptr;
  const SegmentPointers* v = nullptr;
  // What to ask of memory meanwhile.
  const SegmentPointers* next_k = nullptr;
  const SegmentPointers* next_v = nullptr;
  std::size_t head_dim = 0;
  // [kSegmentBlocks] blocks each, with room for 16 scales behind the values of each block.
  std::byte* k_out = nullptr;
  std::byte* v_out = nullptr;
};

/// A way to compute the same bits sooner where many tiles meet the same keys: those are widened
/// once.
struct Widening {
  std::uint32_t from_tiles;  // tiles in a pass from which on it pays
  std::size_t value_bytes;   // of the copies
  void (*widen)(const WideCopy& copy);
  void (*segment)(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out);

  std::size_t block_bytes(std::size_t head_dim) const noexcept {
    return device::kBlockTokens * (head_dim * value_bytes + sizeof(float));
  }
};

struct AttentionKernel {
  std::uint32_t tile_rows;  // at most, <= kMaxTileRows

  /// Rounds and arranges the tile's query rows; `out` has rows * head_dim floats of room.
  void (*pack_queries)(const float* const* rows, std::uint32_t count, std::size_t head_dim,
                       const ScoreParams& score, std::byte* out);
  /// The states of the tile's rows over this segment alone.
  void (*segment)(const AttentionTile& tile, TileBuffers& buffers, const AttentionStates& out);
  /// Merges the states `next` of some later keys into `states`; at most kMaxTileRows rows.
  void (*fold)(const AttentionStates& next, std::uint32_t rows, std::size_t head_dim,
               const AttentionStates& states);
  /// The attention of one row: acc / sum.
  void (*finish)(const float* acc, float sum, std::size_t head_dim, float* out);

  const Widening* widening;  // or null
};

/// The specification, for every KV type and head_dim.
const AttentionKernel& scalar_attention_kernel(device::KvFormat format) noexcept;

// For head_dim in multiples of 16 up to 256. They exist on x86-64 only.
namespace avx2 {
const AttentionKernel& attention_kernel(device::KvFormat format) noexcept;
}
namespace avx512 {
const AttentionKernel& attention_kernel(device::KvFormat format) noexcept;  // same bits as avx2's
/// BF16 or int8 KV by BF16 dot products: queries and weights are rounded to BF16.
const AttentionKernel& bf16_attention_kernel(device::KvFormat format) noexcept;
}  // namespace avx512

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_ATTENTION_KERNEL_H_
