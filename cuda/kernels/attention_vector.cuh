// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_VECTOR_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_VECTOR_CUH_

#include "cuda/kernels/attention_rows.cuh"
#include "cuda/kernels/vector_columns.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/warp.cuh"

// Attention for items of few rows, in fast mode only: plain f32 arithmetic, so that a step of
// decoding is as fast as memory. One block of threads takes all rows of an item and one KV head;
// its warps take the blocks of the item's keys by turns, each with a running softmax of its own
// (Milakov and Gimelshein, 2018, algorithm 3), and meet once, at the end.
//
//   lane  |<--- kKeyLanes lanes: one key, 8 columns each --->|<--- another key --->| ...
//
// Each lane multiplies its columns by those of all rows; sums over the lanes of a key leave lane l
// with the score of row l % kRows, whose softmax it then computes. K of the next step is on its way
// while V of this one is used. Neither query nor weights are rounded; the order of all sums is
// fixed, but it is not that of exact mode, and it depends on kRows.

namespace incipit::cuda {

/// Rows of an item that the kernel takes at most.
constexpr unsigned kVectorRows = 8;

template <class Stored, unsigned kDim, unsigned kMaxRows>
class AttentionVector : AttentionRows<kMaxRows, 128> {
  using Rows = AttentionRows<kMaxRows, 128>;
  using Rows::count_, Rows::item_begin_, Rows::key_end_, Rows::params_, Rows::rows_;
  using Rows::larger, Rows::smaller, Rows::first_visible;
  using Columns = VectorColumns<Stored, kDim>;
  static constexpr unsigned kTokens = static_cast<unsigned>(device::kBlockTokens);
  static constexpr unsigned kRows = kMaxRows;
  static constexpr unsigned kWidth = Columns::kWidth, kKeyLanes = Columns::kKeyLanes;
  static constexpr unsigned kKeys = Columns::kKeys, kLoads = Columns::kLoads;
  static constexpr unsigned kStepKeys = kKeys * kLoads;
  static constexpr unsigned kSteps = kTokens / kStepKeys;  // of a block of KV
  static constexpr unsigned kQuads = padded_dim(kDim) / 4;
  static_assert(kTokens % kStepKeys == 0 && kRows <= kKeyLanes);

 public:
  static constexpr unsigned kThreads = 128, kWarps = kThreads / prim::kWarpLanes;
  static constexpr unsigned kStatesBytes = kWarps * kRows * 8;
  static constexpr unsigned kSharedBytes = Rows::kBytes + kStatesBytes + kRows * 2 * kThreads * 16;
  static_assert(kSharedBytes <= kSharedLimit);

  INCIPIT_DEVICE AttentionVector(const PagedAttentionParams& params, unsigned char* shared)
      : Rows(params) {
    rows_ = reinterpret_cast<AttentionRow*>(shared);
    states_ = reinterpret_cast<SoftmaxState*>(shared + Rows::kBytes);
    sums_ = reinterpret_cast<prim::Pack<float, 4>*>(shared + Rows::kBytes + kStatesBytes);
  }

  INCIPIT_DEVICE void run() {
    Rows::find();
    begin_ = larger(item_begin_, first_visible(Rows::lowest_));
    load_queries();
    walk();
    share_state();
    prim::sync_threads();
    write_values();
    write_states();
  }

 private:
  /// The lane of this one's key that has the softmax of row r.
  static INCIPIT_DEVICE unsigned lane_of(unsigned r) { return (prim::lane() & ~(kRows - 1)) | r; }

  INCIPIT_DEVICE void load_queries() {
    INCIPIT_UNROLL
    for (unsigned r = 0; r < kRows; ++r) {
      prim::Pack<float, 4> low = {}, high = {};
      if (r < count_ && Columns::has_columns()) {
        const AttentionRow row = prim::shared_load(rows_ + r);
        const auto* const from = reinterpret_cast<const prim::Pack<float, 4>*>(
            params_.q + row.batch_row * params_.q_stride + row.head * kDim +
            Columns::chunk() * kWidth);
        low = prim::load(from);
        high = prim::load(from + 1);
      }
      INCIPIT_UNROLL
      for (unsigned i = 0; i < kWidth; ++i) {
        q_[r][i] = i < 4 ? low[i % 4] : high[i % 4];
        values_[r][i] = 0.0f;
      }
    }
    const AttentionRow own = prim::shared_load(rows_ + smaller(prim::lane() % kRows, count_ - 1));
    position_ = own.position;
    slope_ = params_.alibi_slopes == nullptr
                 ? 0.0f
                 : prim::load_constant(params_.alibi_slopes + own.head) * kLog2E;
    state_ = {-prim::infinity(), 0.0f};
  }

  /// This warp's blocks, each in kSteps steps.
  INCIPIT_DEVICE void walk() {
    first_block_ = begin_ / kTokens + prim::warp();
    end_block_ = (key_end_ + kTokens - 1) / kTokens;
    if (begin_ >= key_end_ || first_block_ >= end_block_) return;
    const unsigned steps = ((end_block_ - first_block_ - 1) / kWarps + 1) * kSteps;
    seek(0);
    Columns::load(k_, record(params_.k_offset), step_key_, begin_, key_end_);
    Columns::load(v_, record(params_.v_offset), step_key_, begin_, key_end_);
    float scale = load_scale();
    for (unsigned step = 0; step < steps; ++step) {
      const unsigned key = step_key_;
      const bool more = step + 1 < steps;
      float s[kLoads], next_scale = 0.0f;
      multiply_keys(s, key, scale);
      if (more) {
        seek(step + 1);
        Columns::load(k_, record(params_.k_offset), step_key_, begin_, key_end_);
        next_scale = load_scale();
      }
      finish_scores(s, key);
      multiply_values(s, key, scale);
      if (more) Columns::load(v_, record(params_.v_offset), step_key_, begin_, key_end_);
      scale = next_scale;
    }
  }

  /// Where a step's keys are. The numbers of the warp's next 32 blocks lie one in each lane.
  INCIPIT_DEVICE void seek(unsigned step) {
    const unsigned turn = step / kSteps;
    if (step % (kSteps * prim::kWarpLanes) == 0) {
      const unsigned block = first_block_ + (turn + prim::lane()) * kWarps;
      const device::BlockId* const ids = params_.plan.blocks + Rows::first_block_;
      ids_ = 0;
      if (block < end_block_) ids_ = prim::load_constant(ids + block - item_begin_ / kTokens);
    }
    step_key_ = (first_block_ + turn * kWarps) * kTokens + step % kSteps * kStepKeys;
    block_ = prim::shuffle(ids_, turn % prim::kWarpLanes);
  }

  INCIPIT_DEVICE const unsigned char* record(std::int64_t offset) const {
    return params_.pool + offset + prim::block_y() * params_.head_bytes +
           static_cast<std::int64_t>(block_) * params_.block_bytes;
  }

  /// Int8: lane i has the scale of K of key i of the block, lane 16 + i that of V, of those keys
  /// that the step has.
  INCIPIT_DEVICE float load_scale() const {
    if constexpr (!Columns::kInt8) return 0.0f;
    const unsigned token = prim::lane() % kTokens, first = step_key_ % kTokens;
    const unsigned key = step_key_ - first + token;
    if (token < first || token >= first + kStepKeys || key < begin_ || key >= key_end_) return 0.0f;
    const bool is_v = prim::lane() >= kTokens;
    return prim::load_constant(
        reinterpret_cast<const float*>(record(is_v ? params_.v_offset : params_.k_offset) +
                                       kTokens * kDim) +
        token);
  }

  /// The key of number i of the kLoads that this lane has of a step.
  static INCIPIT_DEVICE unsigned key_of(unsigned step_key, unsigned i) {
    return step_key + i * kKeys + prim::lane() / kKeyLanes;
  }

  /// s[i]: the score of this lane's row and key i.
  INCIPIT_DEVICE void multiply_keys(float (&s)[kLoads], unsigned step_key, float scale) {
    typename Columns::Words words[kLoads];
    Columns::spread(k_, words);
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) {
      float k[kWidth], products[kRows];
      Columns::unpack(words[i], k);
      INCIPIT_UNROLL
      for (unsigned r = 0; r < kRows; ++r) {
        products[r] = 0.0f;
        if (r >= count_) continue;
        INCIPIT_UNROLL
        for (unsigned c = 0; c < kWidth; ++c) {
          products[r] = prim::fma_rn(q_[r][c], k[c], products[r]);
        }
      }
      s[i] = sum_products(products);
      if constexpr (Columns::kInt8) s[i] *= prim::shuffle(scale, key_of(step_key, i) % kTokens);
    }
  }

  /// Sums over the lanes of a key, for the row of the lane: with each step a lane hands on the half
  /// of the rows that is not its own.
  static INCIPIT_DEVICE float sum_products(float (&products)[kRows]) {
    INCIPIT_UNROLL
    for (unsigned half = kRows / 2; half > 0; half /= 2) {
      const bool upper = (prim::lane() & half) != 0;
      INCIPIT_UNROLL
      for (unsigned r = 0; r < half; ++r) {
        const float kept = upper ? products[r + half] : products[r];
        const float given = upper ? products[r] : products[r + half];
        products[r] = kept + prim::shuffle_xor(given, half);
      }
    }
    float sum = products[0];
    INCIPIT_UNROLL
    for (unsigned bits = kRows; bits < kKeyLanes; bits *= 2) sum += prim::shuffle_xor(sum, bits);
    return sum;
  }

  /// Cap, slope, mask and running maximum; then scores become weights, and what was before shrinks
  /// to the new maximum.
  INCIPIT_DEVICE void finish_scores(float (&s)[kLoads], unsigned step_key) {
    const unsigned begin = first_visible(position_), end = smaller(position_ + 1, key_end_);
    float max = state_.max;
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) {
      const unsigned key = key_of(step_key, i);
      if (params_.soft_cap > 0.0f || params_.alibi_slopes != nullptr) {
        s[i] *= params_.score_scale;
        if (params_.soft_cap > 0.0f) s[i] = params_.soft_cap * prim::tanh_f32(s[i]);
        const auto distance = static_cast<std::int32_t>(key - position_);
        s[i] = prim::fma_rn(slope_, static_cast<float>(distance), s[i]);
      }
      if (key < begin || key >= end) s[i] = -prim::infinity();
      max = prim::max_f32(max, s[i]);
    }
    INCIPIT_UNROLL
    for (unsigned bits = kKeyLanes; bits < prim::kWarpLanes; bits *= 2) {
      max = prim::max_f32(max, prim::shuffle_xor(max, bits));
    }
    const float finite = max == -prim::infinity() ? 0.0f : max;
    const float shrink = prim::exp2_approx((state_.max - finite) * params_.exp_scale);
    state_ = {max, state_.sum * shrink};
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) {
      s[i] = prim::exp2_approx(prim::fma_rn(s[i], params_.exp_scale, -finite * params_.exp_scale));
      state_.sum += s[i];
    }
    if (prim::ballot(shrink != 1.0f) == 0) return;
    INCIPIT_UNROLL
    for (unsigned r = 0; r < kRows; ++r) {
      if (r >= count_) continue;
      const float factor = prim::shuffle(shrink, lane_of(r));
      INCIPIT_UNROLL
      for (unsigned c = 0; c < kWidth; ++c) values_[r][c] *= factor;
    }
  }

  /// values += weights V. A key without weight has no say, even if its scale is NaN.
  INCIPIT_DEVICE void multiply_values(const float (&weights)[kLoads], unsigned step_key,
                                      float scale) {
    typename Columns::Words words[kLoads];
    Columns::spread(v_, words);
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kLoads; ++i) {
      float weight = weights[i], v[kWidth];
      if constexpr (Columns::kInt8) {
        const float lifted = prim::shuffle(scale, kTokens + key_of(step_key, i) % kTokens);
        weight = weight == 0.0f ? 0.0f : weight * lifted;
      }
      Columns::unpack(words[i], v);
      INCIPIT_UNROLL
      for (unsigned r = 0; r < kRows; ++r) {
        if (r >= count_) continue;
        const float row_weight = prim::shuffle(weight, lane_of(r));
        INCIPIT_UNROLL
        for (unsigned c = 0; c < kWidth; ++c) {
          values_[r][c] = prim::fma_rn(row_weight, v[c], values_[r][c]);
        }
      }
    }
  }

  /// Place of 4 columns of a lane in sums_. The second half of a lane's 8 lies four lanes on, so
  /// that neither who writes nor who reads meets a bank twice.
  static INCIPIT_DEVICE unsigned place(unsigned r, unsigned half, unsigned warp, unsigned lane) {
    return ((r * 2 + half) * kWarps + warp) * prim::kWarpLanes + (lane ^ half * 4);
  }

  /// Puts the warp's state where all see it.
  INCIPIT_DEVICE void share_state() {
    float sum = state_.sum;  // over this lane's keys
    INCIPIT_UNROLL
    for (unsigned bits = kKeyLanes; bits < prim::kWarpLanes; bits *= 2) {
      sum += prim::shuffle_xor(sum, bits);
    }
    if (prim::lane() < count_) {
      prim::shared_store(states_ + prim::warp() * kRows + prim::lane(), {state_.max, sum});
    }
    INCIPIT_UNROLL
    for (unsigned r = 0; r < kRows; ++r) {
      if (r >= count_) continue;
      INCIPIT_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        const float* const from = values_[r] + half * 4;
        prim::shared_store(sums_ + place(r, half, prim::warp(), prim::lane()),
                           {{from[0], from[1], from[2], from[3]}});
      }
    }
  }

  /// Folds the warps' states of row r in ascending order; visit(fold, warp) for each.
  template <class Visit>
  INCIPIT_DEVICE SoftmaxState fold_warps(unsigned r, const Visit& visit) const {
    SoftmaxState total = {-prim::infinity(), 0.0f};
    INCIPIT_UNROLL
    for (unsigned warp = 0; warp < kWarps; ++warp) {
      const SoftmaxState state = prim::shared_load(states_ + warp * kRows + r);
      const prim::StateFold fold(total.max, state.max, params_.exp_scale);
      total = {fold.max, fold(total.sum, state.sum)};
      visit(fold, warp);
    }
    return total;
  }

  /// The rows' results, or values of their state over the item's keys, which is that of its first
  /// segment; the others are empty.
  INCIPIT_DEVICE void write_values() const {
    for (unsigned i = prim::thread_x(); i < count_ * kQuads; i += kThreads) {
      const unsigned r = i / kQuads, quad = i % kQuads;
      if (quad >= kDim / 4) continue;
      prim::Pack<float, 4> values = {};
      const SoftmaxState total = fold_warps(r, [&](const prim::StateFold& fold, unsigned warp) {
        prim::Pack<float, 4> sum = {};
        INCIPIT_UNROLL
        for (unsigned lane = quad / 2; lane < prim::kWarpLanes; lane += kKeyLanes) {
          const auto part = prim::shared_load(sums_ + place(r, quad % 2, warp, lane));
          INCIPIT_UNROLL
          for (unsigned c = 0; c < 4; ++c) sum[c] += part[c];
        }
        INCIPIT_UNROLL
        for (unsigned c = 0; c < 4; ++c) values[c] = fold(values[c], sum[c]);
      });
      const AttentionRow row = prim::shared_load(rows_ + r);
      float* to = params_.out + row.batch_row * params_.out_stride + row.head * kDim;
      float factor = prim::inverse_sum(total.sum);
      if (row.segment_zero != Rows::kWhole) {
        if (Rows::segment_begin_ > row.position / params_.plan.segment_tokens) continue;
        to = params_.state_values + Rows::state_of(row, Rows::segment_begin_) * kDim;
        factor = 1.0f;
      }
      INCIPIT_UNROLL
      for (unsigned c = 0; c < 4; ++c) values[c] = prim::fma_rn(values[c], factor, 0.0f);
      prim::store(reinterpret_cast<prim::Pack<float, 4>*>(to) + quad, values);
    }
  }

  INCIPIT_DEVICE void write_states() const {
    const unsigned segments = Rows::segment_end_ - Rows::segment_begin_;
    for (unsigned i = prim::thread_x(); i < count_ * segments; i += kThreads) {
      const unsigned r = i % count_, segment = Rows::segment_begin_ + i / count_;
      const AttentionRow row = prim::shared_load(rows_ + r);
      if (row.segment_zero == Rows::kWhole) continue;
      if (segment > row.position / params_.plan.segment_tokens) continue;
      SoftmaxState state = {-prim::infinity(), 0.0f};
      if (segment == Rows::segment_begin_) {
        state = fold_warps(r, [](const prim::StateFold&, unsigned) {});
      }
      prim::store(params_.states + Rows::state_of(row, segment), state);
    }
  }

  // Shared memory.
  SoftmaxState* states_;        // [kWarps, kRows]
  prim::Pack<float, 4>* sums_;  // [kRows, 2, kWarps, lanes]: see place()
  // Where the warp is.
  unsigned begin_;  // the first key that any row sees
  unsigned first_block_, end_block_, step_key_;
  device::BlockId ids_, block_;
  // What the lane has: its columns of a step's keys, of all queries and of all sums.
  typename Columns::Loaded k_, v_;
  float q_[kRows][kWidth], values_[kRows][kWidth];
  // Of its row.
  unsigned position_;
  float slope_;
  SoftmaxState state_;  // the sum: over its keys
};

/// blocks_x: items, blocks_y: KV heads. 12 warps of few rows, or 8 of more, have enough bytes on
/// their way.
template <class Stored, unsigned kDim, unsigned kMaxRows>
INCIPIT_KERNEL(128, kMaxRows > 4 ? 2 : 3)
attention_vector_kernel(PagedAttentionParams params) {
  AttentionVector<Stored, kDim, kMaxRows>(params, prim::dynamic_shared<unsigned char>()).run();
}

/// Attention of the items in `items`, in device memory, none of which has more than most_rows rows
/// of tokens and query heads. Merging comes after.
template <class Stored, unsigned kDim>
void attention_vectors(Stream stream, PagedAttentionParams params, const AttentionTileRef* items,
                       unsigned count, unsigned most_rows) {
  INCIPIT_CHECK(params.head_dim == kDim && params.heads % params.kv_heads == 0);
  INCIPIT_CHECK(most_rows <= kVectorRows && params.exp_scale > 0.0f);
  INCIPIT_CHECK(params.q_stride % 4 == 0 && params.out_stride % 4 == 0);
  params.tiles = items;
  const auto launch_rows = [&]<unsigned kMaxRows>() {
    using Kernel = AttentionVector<Stored, kDim, kMaxRows>;
    launch(stream,
           {.blocks_x = count,
            .blocks_y = params.kv_heads,
            .threads = Kernel::kThreads,
            .shared_bytes = Kernel::kSharedBytes},
           &attention_vector_kernel<Stored, kDim, kMaxRows>, params);
  };
  most_rows <= 4 ? launch_rows.template operator()<4>() : launch_rows.template operator()<8>();
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_VECTOR_CUH_
