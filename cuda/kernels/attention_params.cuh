// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_PARAMS_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_PARAMS_CUH_

#include "cuda/prim/math.cuh"
#include "device/attention_plan.h"

// Paged attention in exact mode: what its two kernels (attention_tile.cuh, attention_merge.cuh)
// and their callers share.
//
// The arithmetic of a row does not depend on which kernel, block or warp computes it:
//
// - the query is rounded once to T, the type of the products;
// - keys advance in tiles of tile_keys(head_dim) at absolute positions, by the loop of
//   FlashAttention-2 (Dao, 2023, algorithm 1): scores by mma over ascending dimensions, a running
//   maximum, weights rounded to T, sums by mma over ascending keys. The sum of the weights is one
//   more column of V, of ones, so it adds up the weights as they were rounded;
// - a tile of which a row sees no key leaves its state as it is, bit for bit: so it does not matter
//   how far the neighbours of the row make a block walk;
// - each segment starts a fresh state, and states are folded in ascending order (fold_states).

namespace incipit::cuda {

/// Keys of one step: part of the arithmetic, so the same for all tiles of a head dimension. Fewer
/// where a tile would not fit into kSharedLimit, or scores and values of 32 rows into registers.
constexpr unsigned tile_keys(unsigned head_dim) { return head_dim > 64 ? 32 : 64; }
/// Segments are multiples of it.
constexpr unsigned kMaxTileKeys = 64;
constexpr float kLog2E = 1.44269504f;
/// Rows of fragments, and of the smallest tile.
constexpr unsigned kFragmentRows = 16;

/// The vectors of a device::AttentionPlan in device memory. Block b of an item's list holds the
/// keys from segment_begin * segment_tokens + b * kBlockTokens on.
struct AttentionPlanView {
  const std::uint32_t* positions = nullptr;  // [batch rows]
  const std::uint32_t* rows = nullptr;       // of the items
  const device::BlockId* blocks = nullptr;   // of the items
  const device::AttentionItem* items = nullptr;
  const std::uint32_t* split_index = nullptr;  // [batch rows]
  const device::SplitRow* split_rows = nullptr;
  std::uint32_t split_row_count = 0;
  std::uint32_t segment_tokens = 0;
};

/// A state of one row over one segment: a softmax that is not normalised.
struct alignas(8) SoftmaxState {
  float max;  // of the scores, in the unit that exp_scale turns to powers of two; -inf without keys
  float sum;  // of the weights 2^(exp_scale * (score - max)); 0 without keys
};

/// Rows of a block of threads: query heads of tokens, numbered token * group + head of the group.
struct AttentionTileRef {
  std::uint32_t item = 0;
  std::uint32_t first_row = 0;  // of the item's row_count * group
};

struct PagedAttentionParams {
  const float* q = nullptr;  // [batch rows, heads * head_dim], 16-byte aligned, as are its rows
  std::int64_t q_stride = 0;
  float* out = nullptr;  // the same shape and alignment; holds running sums meanwhile
  std::int64_t out_stride = 0;
  // KV of one layer: K of KV head h of block b begins at pool + b * block_bytes + k_offset +
  // h * head_bytes, as 16 rows of head_dim values, one after the other; V likewise. With int8, the
  // scales of the 16 rows follow as f32. V of F16 and BF16 is finite: see KvPlane.
  const unsigned char* pool = nullptr;
  std::int64_t block_bytes = 0, k_offset = 0, v_offset = 0, head_bytes = 0;
  AttentionPlanView plan = {};
  const AttentionTileRef* tiles = nullptr;
  // Partial states of split rows: number (state * heads + head).
  SoftmaxState* states = nullptr;
  float* state_values = nullptr;  // [states * heads, head_dim]
  unsigned heads = 0, kv_heads = 0, head_dim = 0;
  // Scores: with neither cap nor slopes they stay q.k, and exp_scale = scale * log2(e). Else they
  // are scale_in_cap * q.k through cap * tanh, or times log2(e) without a cap, and exp_scale = 1.
  float exp_scale = 1.0f;
  float score_scale = 1.0f;             // before the cap or the slope
  float soft_cap = 0.0f;                // times log2(e); 0: none
  const float* alibi_slopes = nullptr;  // [heads]
  unsigned window = 0;                  // keys that a row sees, itself included; 0: all
};

namespace prim {

/// How two states become one; the same bits wherever it happens.
struct StateFold {
  float keep, take, max;

  INCIPIT_DEVICE StateFold(float kept_max, float taken_max, float exp_scale) {
    max = max_f32(kept_max, taken_max);
    const float finite = max == -infinity() ? 0.0f : max;
    keep = exp2_approx((kept_max - finite) * exp_scale);
    take = exp2_approx((taken_max - finite) * exp_scale);
  }
  INCIPIT_DEVICE float operator()(float kept, float taken) const {
    return fma_rn(kept, keep, taken * take);
  }
};

/// What makes weights of a state shares of 1. Without keys the result is zero; NaN stays.
INCIPIT_DEVICE float inverse_sum(float sum) { return sum == 0.0f ? 0.0f : divide_rn(1.0f, sum); }

}  // namespace prim
}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_PARAMS_CUH_
