// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_MERGE_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_MERGE_CUH_

#include "cuda/kernels/attention_params.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"

namespace incipit::cuda {

constexpr unsigned kMergeThreads = 128;

/// Folds the states of each split row, as the tile kernel does those of the rows that it has whole.
/// One warp per row and head; a lane has groups of 4 columns.
template <unsigned kThreads>
INCIPIT_KERNEL(kThreads)
attention_merge_kernel(PagedAttentionParams params) {
  using namespace prim;
  constexpr unsigned kMaxGroups = 2, kWidth = 4;
  const std::int64_t index =
      static_cast<std::int64_t>(block_x()) * (kThreads / kWarpLanes) + warp();
  const std::int64_t split = index / params.heads, head = index % params.heads;
  if (split >= params.plan.split_row_count) return;
  const device::SplitRow* const entry = params.plan.split_rows + split;
  const std::uint32_t row = load_constant(&entry->row);
  const std::int64_t first = load_constant(&entry->first_state);
  const unsigned segments =
      load_constant(params.plan.positions + row) / params.plan.segment_tokens + 1 -
      load_constant(&entry->first_segment);
  SoftmaxState total = {-infinity(), 0.0f};
  Pack<float, kWidth> values[kMaxGroups] = {};
  for (unsigned segment = 0; segment < segments; ++segment) {
    const std::int64_t slot = (first + segment) * params.heads + head;
    const SoftmaxState state = load(params.states + slot);
    if (state.sum == 0.0f) continue;  // it saw no key, and has no values
    const StateFold fold(total.max, state.max, params.exp_scale);
    total = {fold.max, fold(total.sum, state.sum)};
    INCIPIT_UNROLL
    for (unsigned g = 0; g < kMaxGroups; ++g) {
      const unsigned column = (g * kWarpLanes + lane()) * kWidth;
      if (column >= params.head_dim) continue;
      const auto next = load(reinterpret_cast<const Pack<float, kWidth>*>(
          params.state_values + slot * params.head_dim + column));
      INCIPIT_UNROLL
      for (unsigned i = 0; i < kWidth; ++i) values[g][i] = fold(values[g][i], next[i]);
    }
  }
  const float inverse = inverse_sum(total.sum);
  float* const out = params.out + row * params.out_stride + head * params.head_dim;
  INCIPIT_UNROLL
  for (unsigned g = 0; g < kMaxGroups; ++g) {
    const unsigned column = (g * kWarpLanes + lane()) * kWidth;
    if (column >= params.head_dim) continue;
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kWidth; ++i) values[g][i] = fma_rn(values[g][i], inverse, 0.0f);
    store(reinterpret_cast<Pack<float, kWidth>*>(out + column), values[g]);
  }
}

inline void attention_merge(Stream stream, const PagedAttentionParams& params) {
  constexpr std::int64_t kRowsOfBlock = kMergeThreads / prim::kWarpLanes;
  const std::int64_t rows = std::int64_t{params.plan.split_row_count} * params.heads;
  launch(stream,
         {.blocks_x = static_cast<unsigned>((rows + kRowsOfBlock - 1) / kRowsOfBlock),
          .threads = kMergeThreads},
         &attention_merge_kernel<kMergeThreads>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_MERGE_CUH_
