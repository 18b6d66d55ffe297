// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_TILE_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_TILE_CUH_

#include "cuda/kernels/attention_rows.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/mma.cuh"
#include "cuda/prim/warp.cuh"

// The tile kernel: one block of threads takes up to Shape::kRows rows of an item and one KV head,
// and walks the keys of the item's segments once.
//
//   wait for K | barrier | start V | scores = Q K^T | wait for V | barrier | start the next K |
//   softmax | values += weights V
//
// so that a copy is under way all the time, in one buffer for K and one for V.

namespace incipit::cuda {

/// How the warps of a block part a tile. Each warp has kRowTiles x 16 rows. Warps that share rows
/// each compute all scores and a part of the columns of the values: few rows still make enough
/// warps, and wide heads fit into registers.
template <unsigned kRowTilesOfWarp, unsigned kRowWarpCount, unsigned kColumnWarpCount>
struct AttentionShape {
  static constexpr unsigned kRowTiles = kRowTilesOfWarp;
  static constexpr unsigned kRowWarps = kRowWarpCount;
  static constexpr unsigned kColumnWarps = kColumnWarpCount;
  static constexpr unsigned kRows = kFragmentRows * kRowTiles * kRowWarps;
  static constexpr unsigned kThreads = prim::kWarpLanes * kRowWarps * kColumnWarps;
};

template <class T, class Stored, unsigned kDim, class Shape>
class AttentionTile : AttentionRows<Shape::kRows, Shape::kThreads> {
  using Rows = AttentionRows<Shape::kRows, Shape::kThreads>;
  using Rows::count_, Rows::key_begin_, Rows::key_end_, Rows::params_, Rows::rows_;
  using Rows::larger, Rows::smaller, Rows::first_visible;
  static constexpr unsigned kTileKeys = tile_keys(kDim);
  using Loader = KvTileLoader<T, Stored, kDim, kTileKeys, Shape::kThreads>;
  static constexpr bool kInt8 = Loader::kInt8;
  static constexpr unsigned kPitch = Loader::kPitch;
  static constexpr unsigned kRowTiles = Shape::kRowTiles, kThreads = Shape::kThreads;
  // Columns of values in pairs of fragments, 16 wide.
  static constexpr unsigned kPairs = kDim / 16;
  static constexpr unsigned kWarpPairs = (kPairs + Shape::kColumnWarps - 1) / Shape::kColumnWarps;
  static constexpr bool kRagged = kWarpPairs * Shape::kColumnWarps != kPairs;
  static constexpr unsigned kKeyTiles = kTileKeys / 8;  // fragments of scores
  // Weights times scales of V are as small as V is, and F16 has few bits below 2^-14. So they are
  // lifted, and the sums brought back; V of more than 8,000 overflows.
  static constexpr float kLift = kInt8 && !prim::kIsBF16<T> ? 0x1p10f : 1.0f;
  static_assert(kDim % 16 == 0 && sizeof(SoftmaxState) == 8);

 public:
  static constexpr unsigned kQueryBytes = Shape::kRows * kPitch * 2;
  static constexpr unsigned kScalesBytes = kInt8 ? kTileKeys * 4 : 0;
  static constexpr unsigned kTotalsBytes = 2 * kRowTiles * kThreads * 8;
  static constexpr unsigned kSharedBytes = kQueryBytes + 2 * Loader::kTileBytes +
                                           Loader::kStageBytes + 2 * kScalesBytes + Rows::kBytes +
                                           kTotalsBytes;
  static_assert(kSharedBytes <= kSharedLimit);

  INCIPIT_DEVICE AttentionTile(const PagedAttentionParams& params, unsigned char* shared)
      : Rows(params) {
    const auto take = [&](unsigned bytes) {
      unsigned char* const part = shared;
      shared += bytes;
      return part;
    };
    q_ = reinterpret_cast<T*>(take(kQueryBytes));
    k_ = reinterpret_cast<T*>(take(Loader::kTileBytes));
    v_ = reinterpret_cast<T*>(take(Loader::kTileBytes));
    stage_ = take(Loader::kStageBytes);
    k_scales_ = reinterpret_cast<float*>(take(kScalesBytes));
    v_scales_ = reinterpret_cast<float*>(take(kScalesBytes));
    rows_ = reinterpret_cast<AttentionRow*>(take(Rows::kBytes));
    totals_ = reinterpret_cast<SoftmaxState*>(take(kTotalsBytes));
  }

  INCIPIT_DEVICE void run() {
    Rows::find();
    Rows::write_empty_states();
    if (key_begin_ >= key_end_) return Rows::write_zeros(kDim);
    load_queries();
    start_state();
    bool first = true;
    Loader::issue(Rows::plane(params_.k_offset), key_begin_, k_, stage_, k_scales_);
    prim::commit_copies();
    for (unsigned key = key_begin_; key < key_end_; key += kTileKeys) {
      prim::wait_copies<0>();
      Loader::unpack(stage_, k_);
      prim::sync_threads();  // K is here, and V is free
      Loader::issue(Rows::plane(params_.v_offset), key, v_, stage_, v_scales_);
      prim::commit_copies();
      float s[kRowTiles][kKeyTiles][4];
      if (has_rows()) multiply_keys(s);
      prim::wait_copies<0>();
      Loader::unpack(stage_, v_);
      prim::sync_threads();  // V is here, and K is free
      const unsigned next = key + kTileKeys;
      if (next < key_end_) {
        Loader::issue(Rows::plane(params_.k_offset), next, k_, stage_, k_scales_);
      }
      prim::commit_copies();
      if (has_rows()) {
        finish_scores(s, key);
        multiply_values(s);
      }
      if (next >= key_end_ || next % params_.plan.segment_tokens == 0) {
        end_segment(key / params_.plan.segment_tokens, first, next >= key_end_);
        start_state();
        first = false;
      }
    }
    prim::wait_copies<0>();
  }

 private:
  /// Rows of the tile that this lane's fragments hold: 2 per row tile, i = 2 * tile + half.
  INCIPIT_DEVICE unsigned lane_row(unsigned i) const {
    const unsigned row_warp = prim::warp() % Shape::kRowWarps;
    return (row_warp * kRowTiles + i / 2) * kFragmentRows + i % 2 * 8 + prim::lane() / 4;
  }
  /// Whether this warp has any; else it only copies.
  INCIPIT_DEVICE bool has_rows() const {
    return prim::warp() % Shape::kRowWarps * kRowTiles * kFragmentRows < count_;
  }
  INCIPIT_DEVICE unsigned column_warp() const { return prim::warp() / Shape::kRowWarps; }
  /// The pairs of value columns of this warp; the last warps may have fewer.
  INCIPIT_DEVICE bool has_pair(unsigned i) const { return pair_of(i) < kPairs; }
  INCIPIT_DEVICE unsigned pair_of(unsigned i) const { return column_warp() * kWarpPairs + i; }

  /// The queries, rounded, where ldmatrix wants them; zeros for rows that are none.
  INCIPIT_DEVICE void load_queries() {
    constexpr unsigned kChunks = kPitch / 8;  // of the padding, too: see KvTileLoader::kSteps
    for (unsigned i = prim::thread_x(); i < Shape::kRows * kChunks; i += kThreads) {
      const unsigned r = i / kChunks, chunk = i % kChunks;
      prim::Pack<std::uint32_t, 4> values = {};
      if (r < count_ && chunk < kDim / 8) values = Rows::template query_chunk<T>(r, chunk, kDim);
      prim::shared_store(
          reinterpret_cast<prim::Pack<std::uint32_t, 4>*>(q_ + chunk_index<kPitch>(r, chunk)),
          values);
    }
  }

  INCIPIT_DEVICE void start_state() {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2 * kRowTiles; ++i) max_[i] = -prim::infinity();
    INCIPIT_UNROLL
    for (unsigned t = 0; t < kRowTiles; ++t) {
      INCIPIT_UNROLL
      for (unsigned e = 0; e < 4; ++e) {
        sum_[t][e] = 0.0f;
        INCIPIT_UNROLL
        for (unsigned c = 0; c < 2 * kWarpPairs; ++c) values_[t][c][e] = 0.0f;
      }
    }
  }

  /// s = q K^T, [rows, keys of the tile], each sum over ascending dimensions.
  INCIPIT_DEVICE void multiply_keys(float (&s)[kRowTiles][kKeyTiles][4]) {
    const unsigned lane = prim::lane();
    INCIPIT_UNROLL
    for (unsigned t = 0; t < kRowTiles; ++t) {
      INCIPIT_UNROLL
      for (unsigned n = 0; n < kKeyTiles; ++n) {
        INCIPIT_UNROLL
        for (unsigned e = 0; e < 4; ++e) s[t][n][e] = 0.0f;
      }
    }
    const unsigned first_row = prim::warp() % Shape::kRowWarps * kRowTiles * kFragmentRows;
    const unsigned q_place = chunk_index<kPitch>(first_row + lane % 16, lane / 16);
    const unsigned k_place = chunk_index<kPitch>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    INCIPIT_UNROLL
    for (unsigned step = 0; step < kDim / 16; ++step) {
      std::uint32_t a[kRowTiles][4];
      INCIPIT_UNROLL
      for (unsigned t = 0; t < kRowTiles; ++t) {
        prim::load_matrix(a[t], q_ + t * 16 * kPitch + chunk_beyond(q_place, 2 * step));
      }
      INCIPIT_UNROLL
      for (unsigned n = 0; n < kKeyTiles; n += 2) {
        std::uint32_t b[4];  // keys 8n.. and 8(n + 1).., two registers each
        prim::load_matrix(b, k_ + n * 8 * kPitch + chunk_beyond(k_place, 2 * step));
        INCIPIT_UNROLL
        for (unsigned t = 0; t < kRowTiles; ++t) {
          prim::multiply<T>(s[t][n], a[t], b[0], b[1]);
          prim::multiply<T>(s[t][n + 1], a[t], b[2], b[3]);
        }
      }
    }
    if constexpr (kInt8) {
      INCIPIT_UNROLL
      for (unsigned n = 0; n < kKeyTiles; ++n) {
        const auto scales = scales_of(k_scales_, n);
        INCIPIT_UNROLL
        for (unsigned t = 0; t < kRowTiles; ++t) {
          INCIPIT_UNROLL
          for (unsigned e = 0; e < 4; ++e) s[t][n][e] *= scales[e % 2];
        }
      }
    }
  }

  /// Calls visit(score, key within the tile) for the scores of this lane in row lane_row(i). Row by
  /// row, so that what a row needs is in registers for that row only.
  template <class Visit>
  static INCIPIT_DEVICE void for_each_score_of(float (&s)[kRowTiles][kKeyTiles][4], unsigned i,
                                               const Visit& visit) {
    const unsigned pair = prim::lane() % 4 * 2;
    INCIPIT_UNROLL
    for (unsigned n = 0; n < kKeyTiles; ++n) {
      visit(s[i / 2][n][i % 2 * 2], 8 * n + pair);
      visit(s[i / 2][n][i % 2 * 2 + 1], 8 * n + pair + 1);
    }
  }

  /// Cap, slope, mask and running maximum; then scores become weights, and the state so far shrinks
  /// to the new maximum.
  INCIPIT_DEVICE void finish_scores(float (&s)[kRowTiles][kKeyTiles][4], unsigned first_key) {
    if (params_.soft_cap > 0.0f || params_.alibi_slopes != nullptr) bend_scores(s, first_key);
    if (Rows::hides_keys(first_key, kTileKeys)) mask_scores(s, first_key);
    float shrink[2 * kRowTiles];
    bool same = true;
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2 * kRowTiles; ++i) {
      float max = max_[i];
      for_each_score_of(s, i, [&](float& score, unsigned) { max = prim::max_f32(max, score); });
      max = prim::max_lanes<4>(max);
      const float finite = max == -prim::infinity() ? 0.0f : max;
      shrink[i] = prim::exp2_approx((max_[i] - finite) * params_.exp_scale);
      same = same && shrink[i] == 1.0f;
      max_[i] = max;
      const float offset = -finite * params_.exp_scale;
      for_each_score_of(s, i, [&](float& score, unsigned) {
        score = prim::exp2_approx(prim::fma_rn(score, params_.exp_scale, offset));
      });
    }
    if (prim::ballot(!same) != 0) shrink_values(shrink);  // times 1 is as it was
  }

  INCIPIT_DEVICE void shrink_values(const float (&shrink)[2 * kRowTiles]) {
    INCIPIT_UNROLL
    for (unsigned t = 0; t < kRowTiles; ++t) {
      INCIPIT_UNROLL
      for (unsigned e = 0; e < 4; ++e) {
        sum_[t][e] *= shrink[2 * t + e / 2];
        INCIPIT_UNROLL
        for (unsigned c = 0; c < 2 * kWarpPairs; ++c) {
          values_[t][c][e] *= shrink[2 * t + e / 2];
        }
      }
    }
  }

  INCIPIT_DEVICE void bend_scores(float (&s)[kRowTiles][kKeyTiles][4], unsigned first_key) {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2 * kRowTiles; ++i) {
      const AttentionRow row = prim::shared_load(rows_ + smaller(lane_row(i), count_ - 1));
      const float slope = Rows::slope_of(row.head);
      for_each_score_of(s, i, [&](float& score, unsigned key) {
        score = Rows::bend(score, slope, first_key + key, row.position);
      });
    }
  }

  INCIPIT_DEVICE void mask_scores(float (&s)[kRowTiles][kKeyTiles][4], unsigned first_key) {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2 * kRowTiles; ++i) {
      const unsigned position =
          prim::shared_load(&rows_[smaller(lane_row(i), count_ - 1)].position);
      const unsigned begin = first_visible(position), end = smaller(position + 1, key_end_);
      for_each_score_of(s, i, [&](float& score, unsigned in_tile) {
        const unsigned key = first_key + in_tile;
        if (key < begin || key >= end) score = -prim::infinity();
      });
    }
  }

  /// values += weights V (lifted) and sum += weights 1, each over ascending keys.
  INCIPIT_DEVICE void multiply_values(const float (&weights)[kRowTiles][kKeyTiles][4]) {
    const unsigned lane = prim::lane();
    const unsigned v_place = chunk_index<kPitch>(lane % 16, lane / 16);
    const std::uint32_t ones = prim::pack_pair<T>(1.0f, 1.0f);
    INCIPIT_UNROLL
    for (unsigned step = 0; step < kTileKeys / 16; ++step) {
      std::uint32_t a[kRowTiles][4];
      INCIPIT_UNROLL
      for (unsigned t = 0; t < kRowTiles; ++t) {
        round_weights(weights[t][2 * step], weights[t][2 * step + 1], a[t]);
        prim::multiply<T>(sum_[t], a[t], ones, ones);
        if constexpr (kInt8) {
          scale_weights(weights[t][2 * step], weights[t][2 * step + 1], step, a[t]);
        }
      }
      INCIPIT_UNROLL
      for (unsigned i = 0; i < kWarpPairs; ++i) {
        if (kRagged && !has_pair(i)) continue;
        std::uint32_t b[4];
        prim::load_matrix<4, true>(b,
                                   v_ + step * 16 * kPitch + chunk_beyond(v_place, 2 * pair_of(i)));
        INCIPIT_UNROLL
        for (unsigned t = 0; t < kRowTiles; ++t) {
          prim::multiply<T>(values_[t][2 * i], a[t], b[0], b[1]);
          prim::multiply<T>(values_[t][2 * i + 1], a[t], b[2], b[3]);
        }
      }
    }
  }

  /// Two fragments of scores as one of a.
  static INCIPIT_DEVICE void round_weights(const float (&left)[4], const float (&right)[4],
                                           std::uint32_t (&a)[4]) {
    a[0] = prim::pack_pair<T>(left[0], left[1]);
    a[1] = prim::pack_pair<T>(left[2], left[3]);
    a[2] = prim::pack_pair<T>(right[0], right[1]);
    a[3] = prim::pack_pair<T>(right[2], right[3]);
  }

  /// Of the keys whose scores this lane has in fragment n.
  static INCIPIT_DEVICE prim::Pack<float, 2> scales_of(const float* scales, unsigned n) {
    return prim::shared_load(
        reinterpret_cast<const prim::Pack<float, 2>*>(scales + n * 8 + prim::lane() % 4 * 2));
  }

  /// The same, each weight times the lifted scale of its key's V; a key without weight has no say,
  /// even if its scale is NaN.
  INCIPIT_DEVICE void scale_weights(const float (&left)[4], const float (&right)[4], unsigned step,
                                    std::uint32_t (&a)[4]) const {
    float scaled[2][4];
    INCIPIT_UNROLL
    for (unsigned n = 0; n < 2; ++n) {
      const auto scales = scales_of(v_scales_, 2 * step + n);
      INCIPIT_UNROLL
      for (unsigned e = 0; e < 4; ++e) {
        const float weight = n == 0 ? left[e] : right[e];
        scaled[n][e] = weight == 0.0f ? 0.0f : weight * (scales[e % 2] * kLift);
      }
    }
    round_weights(scaled[0], scaled[1], a);
  }

  /// Hands the state of a segment on: to the merge kernel, or into the row's total, which is the
  /// result after the `last` one. Totals live in `out`; each lane finds its own numbers there.
  INCIPIT_DEVICE void end_segment(unsigned segment, bool first, bool last) {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2 * kRowTiles; ++i) {
      const unsigned r = lane_row(i);
      if (r >= count_) continue;
      const AttentionRow row = prim::shared_load(rows_ + r);
      const SoftmaxState state = {max_[i], sum_[i / 2][i % 2 * 2]};
      if (row.segment_zero != Rows::kWhole) {
        if (segment > row.position / params_.plan.segment_tokens) continue;
        const std::int64_t slot = Rows::state_of(row, segment);
        if (prim::lane() % 4 == 0 && column_warp() == 0) {
          prim::store(params_.states + slot, state);
        }
        write_values(i, params_.state_values + slot * kDim, 0.0f, 1.0f, 1.0f);
        continue;
      }
      float keep = 0.0f, take = 1.0f;
      SoftmaxState* const total = totals_ + i * kThreads + prim::thread_x();
      SoftmaxState sum = state;
      if (!first) {
        const SoftmaxState old = prim::shared_load(total);
        const prim::StateFold fold(old.max, state.max, params_.exp_scale);
        keep = fold.keep;
        take = fold.take;
        sum = {fold.max, fold(old.sum, state.sum)};
      }
      prim::shared_store(total, sum);
      write_values(i, params_.out + row.batch_row * params_.out_stride + row.head * kDim, keep,
                   take, last ? prim::inverse_sum(sum.sum) : 1.0f, !first);
    }
  }

  /// to = (what is there * keep + values * take) * factor, where nothing is there unless `fold`.
  INCIPIT_DEVICE void write_values(unsigned i, float* to, float keep, float take, float factor,
                                   bool fold = false) const {
    INCIPIT_UNROLL
    for (unsigned c = 0; c < 2 * kWarpPairs; ++c) {
      if (kRagged && !has_pair(c / 2)) continue;
      auto* const place = reinterpret_cast<prim::Pack<float, 2>*>(to + pair_of(c / 2) * 16 +
                                                                  c % 2 * 8 + prim::lane() % 4 * 2);
      prim::Pack<float, 2> old = {};
      if (fold) old = prim::load(place);
      prim::Pack<float, 2> value;
      INCIPIT_UNROLL
      for (unsigned e = 0; e < 2; ++e) {
        const float x = values_[i / 2][c][i % 2 * 2 + e] * (1.0f / kLift);
        const float sum = fold ? prim::fma_rn(old[e], keep, x * take) : x;
        value[e] = prim::fma_rn(sum, factor, 0.0f);  // the zero has no sign
      }
      prim::store(place, value);
    }
  }

  // Shared memory.
  T* q_;                  // [kRows, kPitch]
  T* k_;                  // [kTileKeys, kPitch]
  T* v_;                  // the same
  unsigned char* stage_;  // int8 only
  float* k_scales_;       // [kTileKeys]
  float* v_scales_;       // [kTileKeys]
  SoftmaxState* totals_;  // [2 * kRowTiles][kThreads] of the segments behind: a lane's own
  // The state of the segment.
  float max_[2 * kRowTiles];  // by row
  float sum_[kRowTiles][4];   // a fragment whose columns are all the same
  float values_[kRowTiles][2 * kWarpPairs][4];
};

/// blocks_x: tiles, blocks_y: KV heads. For more blocks ptxas would spill registers of wide heads.
template <class T, class Stored, unsigned kDim, class Shape>
INCIPIT_KERNEL(Shape::kThreads, kDim > 64 ? 1 : 0)
attention_tile_kernel(PagedAttentionParams params) {
  AttentionTile<T, Stored, kDim, Shape>(params, prim::dynamic_shared<unsigned char>()).run();
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_TILE_CUH_
