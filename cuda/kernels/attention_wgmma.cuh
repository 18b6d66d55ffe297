// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_WGMMA_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_WGMMA_CUH_

#include "cuda/kernels/attention_rows.cuh"
#include "cuda/prim/box_copy.cuh"
#include "cuda/prim/group_product.cuh"
#include "cuda/prim/launch.cuh"

// Attention of many rows on sm_90a, in fast mode: products of warpgroups from shared memory, which
// copies of boxes fill (the scheme of FlashAttention-3: Shah et al., 2024, sections 3.1 and 3.2).
//
// One warp loads tiles of K and V into two stages of each. Two warpgroups have 64 rows of queries
// each, and while one tile's scores become weights, the products of its neighbours run:
//
//   scores(tile + 1) = Q K^T | values += weights(tile) V
//   wait for the scores, turn them to weights(tile + 1) | wait for the values
//
// One softmax goes over all keys of an item, whatever the segments: of a split row the state is
// that of the item's first segment, and those of the others are empty.

namespace incipit::cuda {

struct WgmmaShape {
  static constexpr unsigned kGroups = 2;  // of consumers
  static constexpr unsigned kRowsOfGroup = 64;
  static constexpr unsigned kRows = kGroups * kRowsOfGroup;
  static constexpr unsigned kThreads = (kGroups + 1) * prim::kGroupThreads;
  static constexpr unsigned kTileKeys = 128;
  static constexpr unsigned kStages = 2;
  // A block cannot have more than it starts with: as many per thread, by eights, as there are.
  static constexpr unsigned kStartRegisters = 65536 / kThreads / 8 * 8;
  static constexpr unsigned kLoaderRegisters = 72, kConsumerRegisters = 216;
  static_assert(kLoaderRegisters + kGroups * kConsumerRegisters <= (kGroups + 1) * kStartRegisters);
};

template <class T, unsigned kDim>
class AttentionWgmma : AttentionRows<WgmmaShape::kRows, WgmmaShape::kThreads>, WgmmaShape {
  using Rows = AttentionRows<WgmmaShape::kRows, WgmmaShape::kThreads>;
  using Rows::count_, Rows::key_begin_, Rows::key_end_, Rows::params_, Rows::rows_;
  using Rows::larger, Rows::smaller, Rows::first_visible;
  using Rows::segment_begin_, Rows::segment_end_, Rows::item_begin_, Rows::first_block_;
  using WgmmaShape::kThreads;
  static constexpr unsigned kTokens = static_cast<unsigned>(device::kBlockTokens);
  static constexpr unsigned kRowBytes = 128;    // of a half: 64 dimensions
  static constexpr unsigned kAtomBytes = 1024;  // eight of them
  static constexpr unsigned kHalves = kDim / kBoxValues;
  static constexpr unsigned kHalfBytes = kTileKeys * kRowBytes;
  static constexpr unsigned kQueryHalfBytes = kRows * kRowBytes;
  static constexpr unsigned kTileBytes = kHalves * kHalfBytes;
  static constexpr unsigned kBlocks = kTileKeys / kTokens;
  static constexpr unsigned kBlockBytes = kTokens * kDim * 2;
  static constexpr unsigned kChunks = kDim / 8;       // of 16 bytes, of a row
  static constexpr unsigned kSteps = kTileKeys / 16;  // of a product of weights and values
  static_assert(kDim % kBoxValues == 0 && kDim <= 128 && kBoxValues * 2 == kRowBytes);

  using Scores = float[kTileKeys / 2];  // of two rows: register 4 n + 2 i + e, row i, key 8 n + e
  using Values = float[kDim / 2];       // likewise
  using Weights = std::uint32_t[kSteps][4];

  struct Barriers {
    prim::PhaseBarrier k_full[kStages], k_free[kStages], v_full[kStages], v_free[kStages];
  };
  /// The softmax of this lane's rows so far; a sum is that of the lane's own columns.
  struct State {
    float max[2] = {-prim::infinity(), -prim::infinity()};
    float sum[2] = {0.0f, 0.0f};
    float shrink[2] = {1.0f, 1.0f};  // that the values still lack
  };

 public:
  static constexpr unsigned kSharedBytes = kAtomBytes + kHalves * kQueryHalfBytes +
                                           2 * kStages * kTileBytes + Rows::kBytes +
                                           sizeof(Barriers);

  INCIPIT_DEVICE AttentionWgmma(const PagedAttentionParams& params, const TensorMap& pool,
                                unsigned char* shared)
      : Rows(params), pool_(pool) {
    q_ = shared + (kAtomBytes - prim::shared_address(shared) % kAtomBytes) % kAtomBytes;
    k_ = q_ + kHalves * kQueryHalfBytes;
    v_ = k_ + kStages * kTileBytes;
    rows_ = reinterpret_cast<AttentionRow*>(v_ + kStages * kTileBytes);
    barriers_ = reinterpret_cast<Barriers*>(v_ + kStages * kTileBytes + Rows::kBytes);
  }

  INCIPIT_DEVICE void run() {
    Rows::find();
    if (key_begin_ >= key_end_) {
      Rows::write_empty_states();
      return Rows::write_zeros(kDim);
    }
    for (unsigned segment = segment_begin_ + 1; segment < segment_end_; ++segment) {
      Rows::write_empty_state(segment);
    }
    make_barriers();
    load_queries();
    prim::fence_async_proxy();
    prim::sync_threads();  // the queries and the barriers are there
    if (prim::warp() < group_warps()) {
      prim::set_register_count<kLoaderRegisters, false>();
      if (prim::warp() == 0) load_tiles();
    } else {
      prim::set_register_count<kConsumerRegisters, true>();
      if (group() * kRowsOfGroup < count_) consume_tiles();
    }
  }

 private:
  static constexpr INCIPIT_DEVICE unsigned group_warps() {
    return prim::kGroupThreads / prim::kWarpLanes;
  }
  /// Of consumers.
  INCIPIT_DEVICE unsigned group() const { return prim::warp() / group_warps() - 1; }
  /// The row of the tile that this lane has in half i of its fragments.
  INCIPIT_DEVICE unsigned lane_row(unsigned i) const {
    return (prim::warp() - group_warps()) * kFragmentRows + i * 8 + prim::lane() / 4;
  }
  INCIPIT_DEVICE unsigned tiles() const {
    return (key_end_ - key_begin_ + kTileKeys - 1) / kTileKeys;
  }

  INCIPIT_DEVICE void make_barriers() const {
    if (prim::thread_x() != 0) return;
    const unsigned groups = count_ > kRowsOfGroup ? 2 : 1;  // that have rows
    for (unsigned stage = 0; stage < kStages; ++stage) {
      prim::init_barrier(&barriers_->k_full[stage], 1);
      prim::init_barrier(&barriers_->v_full[stage], 1);
      prim::init_barrier(&barriers_->k_free[stage], groups * group_warps());
      prim::init_barrier(&barriers_->v_free[stage], groups * group_warps());
    }
    prim::publish_barriers();
  }

  /// The place of a 16-byte chunk in a tile of so many bytes per half.
  static INCIPIT_DEVICE unsigned chunk_place(unsigned row, unsigned chunk, unsigned half_bytes) {
    return chunk / 8 * half_bytes + row * kRowBytes + ((chunk ^ row) & 7u) * 16;
  }

  INCIPIT_DEVICE void load_queries() const {
    for (unsigned i = prim::thread_x(); i < kRows * kChunks; i += kThreads) {
      const unsigned r = i / kChunks, chunk = i % kChunks;
      prim::Pack<std::uint32_t, 4> values = {};
      if (r < count_) values = Rows::template query_chunk<T>(r, chunk, kDim);
      prim::shared_store(reinterpret_cast<prim::Pack<std::uint32_t, 4>*>(
                             q_ + chunk_place(r, chunk, kQueryHalfBytes)),
                         values);
    }
  }

  /// What the loading warp does.
  INCIPIT_DEVICE void load_tiles() const {
    for (unsigned tile = 0; tile < tiles(); ++tile) {
      const unsigned stage = tile % kStages, parity = tile / kStages % 2;
      prim::wait_phase(&barriers_->k_free[stage], parity ^ 1u);
      load_tile(params_.k_offset, tile, k_ + stage * kTileBytes, &barriers_->k_full[stage]);
      prim::wait_phase(&barriers_->v_free[stage], parity ^ 1u);
      load_tile(params_.v_offset, tile, v_ + stage * kTileBytes, &barriers_->v_full[stage]);
    }
  }

  /// Whole blocks by copies of boxes, the rest by hand.
  INCIPIT_DEVICE void load_tile(std::int64_t offset, unsigned tile, unsigned char* to,
                                prim::PhaseBarrier* full) const {
    const unsigned first_key = key_begin_ + tile * kTileKeys;
    const unsigned whole = smaller(kBlocks, (key_end_ - first_key) / kTokens);
    if (whole < kBlocks) {
      load_rest(Rows::plane(offset), first_key, whole * kTokens, to);
      prim::fence_async_proxy();
      prim::sync_warp();  // all lanes' stores are there
    }
    device::BlockId block = 0;
    if (prim::lane() < whole) {
      block = prim::load_constant(params_.plan.blocks + first_block_ +
                                  (first_key - item_begin_) / kTokens + prim::lane());
    }
    const std::int64_t byte = offset + prim::block_y() * params_.head_bytes;
    const auto row = static_cast<int>(byte / (kDim * 2));  // of the block
    if (prim::lane() == 0) prim::arrive(full, whole * kBlockBytes);
    for (unsigned b = 0; b < whole; ++b) {
      const auto plane = static_cast<int>(prim::shuffle(block, b));
      if (prim::lane() != 0) continue;
      INCIPIT_UNROLL
      for (unsigned half = 0; half < kHalves; ++half) {
        prim::copy_box(to + half * kHalfBytes + b * kTokens * kRowBytes, pool_,
                       static_cast<int>(half * kBoxValues), row, plane, full);
      }
    }
  }

  /// Keys of a tile from `begin` on, of which some are not written yet: zeros, as weights of zero
  /// do not make nothing of NaN.
  INCIPIT_DEVICE void load_rest(const KvPlane& plane, unsigned first_key, unsigned begin,
                                unsigned char* to) const {
    using Chunk = prim::Pack<std::uint32_t, 4>;
    for (unsigned i = prim::lane(); i < (kTileKeys - begin) * kChunks; i += prim::kWarpLanes) {
      const unsigned row = begin + i / kChunks, chunk = i % kChunks, key = first_key + row;
      Chunk values = {};
      if (key < key_end_) {
        values = prim::load(reinterpret_cast<const Chunk*>(
            plane.record(key) + key % kTokens * (kDim * 2) + chunk * 16));
      }
      prim::shared_store(reinterpret_cast<Chunk*>(to + chunk_place(row, chunk, kHalfBytes)),
                         values);
    }
  }

  /// What a warpgroup with rows does.
  INCIPIT_DEVICE void consume_tiles() const {
    State state;
    Scores s;
    Values values;
    Weights weights;
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kDim / 2; ++i) values[i] = 0.0f;
    prim::wait_phase(&barriers_->k_full[0], 0);
    prim::begin_products(prim::Site::here(), s);
    multiply_keys(s, 0);
    prim::wait_products<0>(prim::Site::here(), s);
    release(&barriers_->k_free[0]);
    weigh_scores(s, 0, state);
    round_weights(s, weights);
    const unsigned count = tiles();
    for (unsigned tile = 1; tile < count; ++tile) {
      const unsigned stage = tile % kStages, before = (tile - 1) % kStages;
      prim::wait_phase(&barriers_->k_full[stage], tile / kStages % 2);
      prim::begin_products(prim::Site::here(), s);
      multiply_keys(s, stage);
      prim::wait_phase(&barriers_->v_full[before], (tile - 1) / kStages % 2);
      prim::begin_products(prim::Site::here(), values, weights);
      multiply_values(weights, before, values);
      prim::wait_products<1>(prim::Site::here(), s);
      release(&barriers_->k_free[stage]);
      weigh_scores(s, tile, state);
      prim::wait_products<0>(prim::Site::here(), values);
      release(&barriers_->v_free[before]);
      shrink_values(state, values);
      round_weights(s, weights);
    }
    const unsigned last = count - 1;
    prim::wait_phase(&barriers_->v_full[last % kStages], last / kStages % 2);
    prim::begin_products(prim::Site::here(), values, weights);
    multiply_values(weights, last % kStages, values);
    prim::wait_products<0>(prim::Site::here(), values);
    write_rows(state, values);
  }

  /// This warp is done with a stage.
  static INCIPIT_DEVICE void release(prim::PhaseBarrier* free) {
    if (prim::lane() == 0) prim::arrive(free);
  }

  /// s = q K^T of the group's rows, over ascending dimensions.
  INCIPIT_DEVICE void multiply_keys(Scores& s, unsigned stage) const {
    const std::uint32_t q = prim::shared_address(q_) + group() * kRowsOfGroup * kRowBytes;
    const std::uint32_t k = prim::shared_address(k_) + stage * kTileBytes;
    INCIPIT_UNROLL
    for (unsigned step = 0; step < kDim / 16; ++step) {
      const unsigned half = step / 4, byte = step % 4 * 32;
      const auto a = prim::describe_matrix(q + half * kQueryHalfBytes + byte, 16, kAtomBytes);
      const auto b = prim::describe_matrix(k + half * kHalfBytes + byte, 16, kAtomBytes);
      if (step == 0) {
        prim::multiply_group<T, false>(s, a, b);
      } else {
        prim::multiply_group<T, true>(s, a, b);
      }
    }
    prim::commit_products();
  }

  /// values += weights V, over ascending keys.
  INCIPIT_DEVICE void multiply_values(const Weights& weights, unsigned stage,
                                      Values& values) const {
    const std::uint32_t v = prim::shared_address(v_) + stage * kTileBytes;
    INCIPIT_UNROLL
    for (unsigned step = 0; step < kSteps; ++step) {
      prim::multiply_group_rows<T>(
          values, weights[step],
          prim::describe_matrix(v + step * 16 * kRowBytes, kHalfBytes, kAtomBytes));
    }
    prim::commit_products();
  }

  /// Calls visit(score, key within the tile) for the scores of this lane's row i.
  template <class Visit>
  static INCIPIT_DEVICE void for_each_score_of(Scores& s, unsigned i, const Visit& visit) {
    INCIPIT_UNROLL
    for (unsigned n = 0; n < kTileKeys / 8; ++n) {
      visit(s[4 * n + 2 * i], 8 * n + prim::lane() % 4 * 2);
      visit(s[4 * n + 2 * i + 1], 8 * n + prim::lane() % 4 * 2 + 1);
    }
  }

  /// Scores become weights of the running maximum.
  INCIPIT_DEVICE void weigh_scores(Scores& s, unsigned tile, State& state) const {
    const unsigned first_key = key_begin_ + tile * kTileKeys;
    const bool bent = params_.soft_cap > 0.0f || params_.alibi_slopes != nullptr;
    const bool hidden = Rows::hides_keys(first_key, kTileKeys);
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2; ++i) {
      if (bent || hidden) {
        const AttentionRow row = prim::shared_load(rows_ + smaller(lane_row(i), count_ - 1));
        if (bent) {
          const float slope = Rows::slope_of(row.head);
          for_each_score_of(s, i, [&](float& score, unsigned key) {
            score = Rows::bend(score, slope, first_key + key, row.position);
          });
        }
        if (hidden) {
          const unsigned begin = first_visible(row.position);
          const unsigned end = smaller(row.position + 1, key_end_);
          for_each_score_of(s, i, [&](float& score, unsigned key) {
            if (first_key + key < begin || first_key + key >= end) score = -prim::infinity();
          });
        }
      }
      float max = state.max[i];
      for_each_score_of(s, i, [&](float& score, unsigned) { max = prim::max_f32(max, score); });
      max = prim::max_lanes<4>(max);
      const float finite = max == -prim::infinity() ? 0.0f : max;
      state.shrink[i] = prim::exp2_approx((state.max[i] - finite) * params_.exp_scale);
      state.max[i] = max;
      const float offset = -finite * params_.exp_scale;
      float even = 0.0f, odd = 0.0f;  // keys: two chains of sums instead of one
      for_each_score_of(s, i, [&](float& score, unsigned key) {
        score = prim::exp2_approx(prim::fma_rn(score, params_.exp_scale, offset));
        (key % 2 == 0 ? even : odd) += score;
      });
      state.sum[i] = prim::fma_rn(state.sum[i], state.shrink[i], even + odd);
    }
  }

  static INCIPIT_DEVICE void shrink_values(const State& state, Values& values) {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kDim / 2; ++i) values[i] *= state.shrink[i / 2 % 2];
  }

  static INCIPIT_DEVICE void round_weights(const Scores& s, Weights& weights) {
    INCIPIT_UNROLL
    for (unsigned step = 0; step < kSteps; ++step) {
      INCIPIT_UNROLL
      for (unsigned j = 0; j < 4; ++j) {
        weights[step][j] = prim::pack_pair<T>(s[8 * step + 2 * j], s[8 * step + 2 * j + 1]);
      }
    }
  }

  /// The results of whole rows, the states of split ones.
  INCIPIT_DEVICE void write_rows(const State& state, const Values& values) const {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2; ++i) {
      const float sum = prim::sum_lanes<4>(state.sum[i]);
      const unsigned r = lane_row(i);
      if (r >= count_) continue;
      const AttentionRow row = prim::shared_load(rows_ + r);
      float* to = params_.out + row.batch_row * params_.out_stride + row.head * kDim;
      float factor = prim::inverse_sum(sum);
      if (row.segment_zero != Rows::kWhole) {
        if (segment_begin_ > row.position / params_.plan.segment_tokens) continue;
        const std::int64_t slot = Rows::state_of(row, segment_begin_);
        if (prim::lane() % 4 == 0) prim::store(params_.states + slot, {state.max[i], sum});
        to = params_.state_values + slot * kDim;
        factor = 1.0f;
      }
      INCIPIT_UNROLL
      for (unsigned n = 0; n < kDim / 8; ++n) {
        // The zero has no sign.
        const prim::Pack<float, 2> pair = {prim::fma_rn(values[4 * n + 2 * i], factor, 0.0f),
                                           prim::fma_rn(values[4 * n + 2 * i + 1], factor, 0.0f)};
        prim::store(reinterpret_cast<prim::Pack<float, 2>*>(to + 8 * n + prim::lane() % 4 * 2),
                    pair);
      }
    }
  }

  const TensorMap& pool_;
  // Shared memory.
  unsigned char* q_;  // [kHalves][kRows] of 128 bytes
  unsigned char* k_;  // [kStages][kHalves][kTileKeys] likewise
  unsigned char* v_;  // the same
  Barriers* barriers_;
};

/// blocks_x: tiles, blocks_y: KV heads.
template <class T, unsigned kDim>
INCIPIT_KERNEL(WgmmaShape::kThreads, 1)
attention_wgmma_kernel(PagedAttentionParams params, INCIPIT_GRID_CONSTANT const TensorMap pool) {
#if INCIPIT_CUDA_WARPGROUPS
  AttentionWgmma<T, kDim>(params, pool, prim::dynamic_shared<unsigned char>()).run();
#else
  prim::trap();
#endif
}

/// Attention over tiles of up to WgmmaShape::kRows rows, in device memory, on a GPU of compute
/// capability 9.0. Merging comes after.
template <class T, unsigned kDim>
void attention_wgmma(Stream stream, PagedAttentionParams params, const AttentionTileRef* tiles,
                     unsigned count) {
  if (count == 0) return;
  INCIPIT_CHECK(params.head_dim == kDim && params.heads % params.kv_heads == 0);
  INCIPIT_CHECK(params.exp_scale > 0.0f && params.block_bytes % (kDim * 2) == 0);
  INCIPIT_CHECK(params.q_stride % 4 == 0 && params.out_stride % 4 == 0);
  constexpr std::uint64_t kAnyBlock = std::uint64_t{1} << 31;  // the plan knows which there are
  const auto block_bytes = static_cast<std::uint64_t>(params.block_bytes);
  params.tiles = tiles;
  launch(stream,
         {.blocks_x = count,
          .blocks_y = params.kv_heads,
          .threads = WgmmaShape::kThreads,
          .shared_bytes = AttentionWgmma<T, kDim>::kSharedBytes},
         &attention_wgmma_kernel<T, kDim>, params,
         make_tensor_map({params.pool,
                          {kDim, block_bytes / (kDim * 2), kAnyBlock},
                          kDim * 2,
                          block_bytes,
                          static_cast<std::uint32_t>(device::kBlockTokens)}));
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_WGMMA_CUH_
