// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_DEVICE_ATTENTION_PLAN_H_
#define INCIPIT_DEVICE_ATTENTION_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "device/kv_layout.h"

// Which rows of a ragged batch meet which keys, and who computes what.
//
// A row at position p sees the keys 0..p. Keys are cut into segments that start at fixed absolute
// positions (multiples of DeviceInfo::segment_tokens). A row's attention state over a segment
// starts fresh, and the states of its segments are merged in segment order. That arithmetic is the
// same however the work below is cut, so the plan decides about time only, never about results.
//
//   segments       0     1     2     3     4          items
//   sample A  ->   [ s h a r e d   r u n ]  a         A, B, C x segments 0..3   (or cut in two)
//   sample B  ->   [                     ]  b         A x segment 4
//   sample C  ->   [                     ]  c  c'     B x segment 4, C x segments 4..5

namespace incipit::device {

/// The rows that one sequence brings to a step. The rows of a batch follow each other in the order
/// of its sequences.
struct SequenceRows {
  std::span<const BlockId> blocks = {};  // its block table; covers first_position + rows tokens
  std::uint32_t first_position = 0;      // of its first row; the others follow without a gap
  std::uint32_t rows = 0;                // >= 1
};

/// One piece of work: some rows against a run of segments whose blocks they share. A row that ends
/// earlier than the run, or whose window begins later, has no part in the rest.
struct AttentionItem {
  std::uint32_t first_row = 0, row_count = 0;  // into AttentionPlan::rows
  // The blocks of segment_begin, segment_begin + 1, ...: into AttentionPlan::blocks. The last
  // segment may have fewer blocks than a whole one.
  std::uint32_t first_block = 0, block_count = 0;
  std::uint32_t segment_begin = 0, segment_end = 0;
  bool first = true;  // no row of it has an earlier item: states may be merged on the way
};

/// A row whose segments lie in several items, or in one that is not the first of all its rows.
/// Items leave partial states of it, and who computes the last of them merges all.
struct SplitRow {
  std::uint32_t row = 0;            // of the batch
  std::uint32_t first_segment = 0;  // that any of its items has
  std::uint32_t first_state = 0;    // its segment s has state first_state + s - first_segment
  std::uint32_t items = 0;          // that have the row, >= 1
};

struct AttentionPlan {
  static constexpr std::uint32_t kWhole = ~std::uint32_t{0};

  std::vector<std::uint32_t> positions = {};  // [batch rows] position of each row
  std::vector<std::uint32_t> rows = {};       // batch rows of the items; items may share them
  std::vector<BlockId> blocks = {};           // block lists of the items; items may share them
  std::vector<AttentionItem> items = {};      // the largest first
  std::vector<SplitRow> split_rows = {};      // by batch row
  // [batch rows] index into split_rows, or kWhole where one item has all of the row's segments: it
  // merges them itself and writes the result.
  std::vector<std::uint32_t> split_index = {};
  std::uint32_t states = 0;          // partial states of all split rows
  std::uint32_t segment_tokens = 0;  // a multiple of kBlockTokens
  std::uint32_t window = 0;          // no row sees more than so many keys; 0: all

  /// Segments up to the row's own.
  std::uint32_t segments_of(std::uint32_t batch_row) const noexcept {
    return positions[batch_row] / segment_tokens + 1;
  }
  /// The first of them that its window reaches.
  std::uint32_t first_segment_of(std::uint32_t batch_row) const noexcept {
    const std::uint32_t keys = positions[batch_row] + 1;
    return window == 0 || window >= keys ? 0 : (keys - window) / segment_tokens;
  }
};

struct PlanOptions {
  std::uint32_t segment_tokens = 256;
  // Rows that share an item at most.
  std::uint32_t max_item_rows = 64;
  // Rows are not cut into parts of fewer than this: such waste the arithmetic of small products.
  std::uint32_t least_item_rows = 16;
  // A sequence that brings more rows than this keeps items of its own: it reads its KV for enough
  // rows as it is, and sharing would cost a merge.
  std::uint32_t max_shared_rows = 16;
  // Items worth making, per KV head, so that all of the device's threads have work.
  std::uint32_t wanted_items = 1;
};

/// Groups rows that share blocks (samples of one prompt, users of one system prompt) into one item
/// per shared run of whole segments, and cuts large items where there would be too few.
/// With a window, which serves layers that have that window or a smaller one, segments that it
/// hides from all rows of an item are left out. O(rows + blocks), but for sorting short lists of
/// sequences and of items.
AttentionPlan plan_attention(std::span<const SequenceRows> sequences, const PlanOptions& options,
                             std::uint32_t window = 0);

}  // namespace incipit::device

#endif  // INCIPIT_DEVICE_ATTENTION_PLAN_H_
