// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_ROWS_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_ROWS_CUH_

#include "cuda/kernels/attention_params.cuh"
#include "cuda/kernels/kv_tile.cuh"
#include "cuda/prim/warp.cuh"

namespace incipit::cuda {

/// What a block knows of one of its rows.
struct alignas(16) AttentionRow {
  std::uint32_t batch_row, head, position;
  // Segment s has state segment_zero + s, for those that the row has; less than zero where it has
  // not the first ones. kWhole: the row has no other items, and no states.
  std::int32_t segment_zero;
};

/// The rows of a block's tile (blocks_x: tiles, blocks_y: KV heads), and the keys that they see.
template <unsigned kMaxRows, unsigned kThreads>
class AttentionRows {
 public:
  static constexpr unsigned kBytes = kMaxRows * 16;    // of shared memory, at rows_
  static constexpr std::int32_t kWhole = -0x7fffffff;  // more segments than there are positions
  static_assert(sizeof(AttentionRow) == 16);

  INCIPIT_DEVICE explicit AttentionRows(const PagedAttentionParams& params) : params_(params) {}

  INCIPIT_DEVICE void find() {
    find_rows();
    find_keys();
  }

  static INCIPIT_DEVICE unsigned smaller(unsigned a, unsigned b) { return a < b ? a : b; }
  static INCIPIT_DEVICE unsigned larger(unsigned a, unsigned b) { return a > b ? a : b; }

  /// The first key that a row at this position sees.
  INCIPIT_DEVICE unsigned first_visible(unsigned position) const {
    const unsigned window = params_.window;
    return window == 0 || position < window ? 0 : position + 1 - window;
  }

  INCIPIT_DEVICE KvPlane plane(std::int64_t offset) const {
    return {params_.pool + offset + prim::block_y() * params_.head_bytes, params_.block_bytes,
            params_.plan.blocks + first_block_, item_begin_, key_end_};
  }

  INCIPIT_DEVICE std::int64_t state_of(const AttentionRow& row, unsigned segment) const {
    const std::int64_t state = static_cast<std::int64_t>(row.segment_zero) + segment;
    return state * params_.heads + row.head;
  }

  /// States of the item's segments of which no row sees a key, for the merge kernel.
  INCIPIT_DEVICE void write_empty_states() const {
    const unsigned tokens = params_.plan.segment_tokens;
    for (unsigned segment = segment_begin_; segment < segment_end_; ++segment) {
      const unsigned begin = larger(segment * tokens, key_begin_);
      if (begin >= smaller((segment + 1) * tokens, key_end_)) write_empty_state(segment);
    }
  }
  INCIPIT_DEVICE void write_empty_state(unsigned segment) const {
    for (unsigned r = prim::thread_x(); r < count_; r += kThreads) {
      const AttentionRow row = prim::shared_load(rows_ + r);
      const bool reached = segment <= row.position / params_.plan.segment_tokens;
      if (row.segment_zero == kWhole || !reached) continue;
      prim::store(params_.states + state_of(row, segment), {-prim::infinity(), 0.0f});
    }
  }

  /// The result of rows that see no key.
  INCIPIT_DEVICE void write_zeros(unsigned dim) const {
    for (unsigned i = prim::thread_x(); i < count_ * dim; i += kThreads) {
      const AttentionRow row = prim::shared_load(rows_ + i / dim);
      if (row.segment_zero != kWhole) continue;
      prim::store(params_.out + row.batch_row * params_.out_stride + row.head * dim + i % dim,
                  0.0f);
    }
  }

  /// 8 values of the query of row r, rounded to T.
  template <class T>
  INCIPIT_DEVICE prim::Pack<std::uint32_t, 4> query_chunk(unsigned r, unsigned chunk,
                                                          unsigned dim) const {
    const AttentionRow row = prim::shared_load(rows_ + r);
    const auto* const from = reinterpret_cast<const prim::Pack<float, 4>*>(
        params_.q + row.batch_row * params_.q_stride + row.head * dim + chunk * 8);
    const auto low = prim::load(from), high = prim::load(from + 1);
    return {{prim::pack_pair<T>(low[0], low[1]), prim::pack_pair<T>(low[2], low[3]),
             prim::pack_pair<T>(high[0], high[1]), prim::pack_pair<T>(high[2], high[3])}};
  }

  /// Whether some row does not see some of these keys.
  INCIPIT_DEVICE bool hides_keys(unsigned first_key, unsigned keys) const {
    return first_key + keys > smaller(lowest_ + 1, key_end_) || first_key < first_visible(highest_);
  }

  /// ALiBi's slope of a head in powers of two; 0: none.
  INCIPIT_DEVICE float slope_of(unsigned head) const {
    return params_.alibi_slopes == nullptr
               ? 0.0f
               : prim::load_constant(params_.alibi_slopes + head) * kLog2E;
  }
  /// A score in powers of two: soft cap, then the slope times the (exact) distance.
  INCIPIT_DEVICE float bend(float score, float slope, unsigned key, unsigned position) const {
    score *= params_.score_scale;
    if (params_.soft_cap > 0.0f) score = params_.soft_cap * prim::tanh_f32(score);
    const auto distance = static_cast<std::int32_t>(key - position);
    return prim::fma_rn(slope, static_cast<float>(distance), score);
  }

  const PagedAttentionParams& params_;
  AttentionRow* rows_ = nullptr;  // [count_]
  // The tile.
  unsigned count_;                        // of rows
  unsigned segment_begin_, segment_end_;  // of the item
  unsigned first_block_, item_begin_;     // the item's block list, and its first key
  unsigned key_begin_, key_end_;          // keys that the tile's rows see
  unsigned lowest_, highest_;             // positions of its rows

 private:
  /// Who the rows are. Others than the tile's own see no key.
  INCIPIT_DEVICE void find_rows() {
    const AttentionTileRef* const tile = params_.tiles + prim::block_x();
    const device::AttentionItem* const item = params_.plan.items + prim::load_constant(&tile->item);
    const unsigned group = params_.heads / params_.kv_heads;
    const unsigned tile_row = prim::load_constant(&tile->first_row);
    const std::uint32_t* const rows = params_.plan.rows + prim::load_constant(&item->first_row);
    count_ = smaller(kMaxRows, prim::load_constant(&item->row_count) * group - tile_row);
    for (unsigned r = prim::thread_x(); r < count_; r += kThreads) {
      AttentionRow row;
      row.batch_row = prim::load_constant(rows + (tile_row + r) / group);
      row.head = prim::block_y() * group + (tile_row + r) % group;
      row.position = prim::load_constant(params_.plan.positions + row.batch_row);
      const std::uint32_t split = prim::load_constant(params_.plan.split_index + row.batch_row);
      row.segment_zero = kWhole;
      if (split != device::AttentionPlan::kWhole) {
        const device::SplitRow* const entry = params_.plan.split_rows + split;
        row.segment_zero = static_cast<std::int32_t>(prim::load_constant(&entry->first_state) -
                                                     prim::load_constant(&entry->first_segment));
      }
      prim::shared_store(rows_ + r, row);
    }
    segment_begin_ = prim::load_constant(&item->segment_begin);
    segment_end_ = prim::load_constant(&item->segment_end);
    first_block_ = prim::load_constant(&item->first_block);
    item_begin_ = segment_begin_ * params_.plan.segment_tokens;
    constexpr auto kTokens = static_cast<unsigned>(device::kBlockTokens);
    key_end_ = smaller(segment_end_ * params_.plan.segment_tokens,
                       item_begin_ + prim::load_constant(&item->block_count) * kTokens);
    prim::sync_threads();
  }

  /// The keys that any of the rows sees, from a whole tile on.
  INCIPIT_DEVICE void find_keys() {
    unsigned lowest = ~0u, highest = 0;
    for (unsigned r = prim::lane(); r < count_; r += prim::kWarpLanes) {
      const AttentionRow row = prim::shared_load(rows_ + r);  // whole, for the banks' sake
      lowest = smaller(lowest, row.position);
      highest = larger(highest, row.position);
    }
    lowest_ = prim::reduce_lanes(lowest, smaller);
    highest_ = prim::reduce_lanes(highest, larger);
    key_end_ = smaller(key_end_, highest_ + 1);
    key_begin_ = larger(item_begin_, first_visible(lowest_) / kMaxTileKeys * kMaxTileKeys);
  }
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_ROWS_CUH_
