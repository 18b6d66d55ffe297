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

namespace incipit::device {

/// The rows that one sequence brings to a step. The rows of a batch follow each other in the order
/// of its sequences.
struct SequenceRows {
  std::span<const BlockId> blocks = {};  // its block table; covers first_position + rows tokens
  std::uint32_t first_position = 0;      // of its first row; the others follow without a gap
  std::uint32_t rows = 0;                // >= 1
};

/// One piece of work: some rows against a run of segments whose blocks they share.
struct AttentionItem {
  std::uint32_t first_row = 0, row_count = 0;  // into AttentionPlan::rows
  // The blocks of segment_begin, segment_begin + 1, ...: into AttentionPlan::blocks.
  std::uint32_t first_block = 0;
  std::uint32_t segment_begin = 0, segment_end = 0;
  // True where the rows' segments all lie in this item: it merges them itself and writes the
  // result. Else it leaves one partial state per row and segment for the merge.
  bool whole = false;
};

struct AttentionPlan {
  std::vector<std::uint32_t> positions = {};  // [batch rows] position of each row
  std::vector<std::uint32_t> rows = {};       // batch rows, item by item
  std::vector<BlockId> blocks = {};           // block lists, item by item
  std::vector<AttentionItem> items = {};
  std::vector<std::uint32_t> split_rows = {};  // batch rows that need a merge, ascending
  std::uint32_t segment_tokens = 0;            // a multiple of kBlockTokens

  /// Segments that a row sees.
  std::uint32_t segments_of(std::uint32_t batch_row) const noexcept {
    return positions[batch_row] / segment_tokens + 1;
  }
};

struct PlanOptions {
  std::uint32_t segment_tokens = 256;
  // Rows of one sequence that share an item at most.
  std::uint32_t max_item_rows = 64;
  // Items worth making, per KV head, so that all of the device's threads have work.
  std::uint32_t wanted_items = 1;
};

/// Groups rows that share blocks (samples of one prompt, users of one system prompt) into one item
/// per shared run of whole segments, and cuts long rows into several items where there would be too
/// few. O(rows + blocks).
AttentionPlan plan_attention(std::span<const SequenceRows> sequences, const PlanOptions& options);

}  // namespace incipit::device

#endif  // INCIPIT_DEVICE_ATTENTION_PLAN_H_
