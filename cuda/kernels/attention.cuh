// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ATTENTION_CUH_
#define INCIPIT_CUDA_KERNELS_ATTENTION_CUH_

#include <algorithm>
#include <vector>

#include "cuda/kernels/attention_tile.cuh"
#include "cuda/kernels/attention_vector.cuh"

namespace incipit::cuda {

/// Few rows: the four warps share them, so a step of decoding has enough warps to wait for memory.
using NarrowShape = AttentionShape<1, 1, 4>;

/// Many rows. 32 rows per warp read each fragment of K and V once for two products; wide heads have
/// neither registers nor shared memory for it.
template <unsigned kDim>
struct WideShapeOf {
  using Type = AttentionShape<2, 4, 1>;
};
template <>
struct WideShapeOf<256> {
  using Type = AttentionShape<1, 2, 4>;
};

constexpr unsigned wide_rows(unsigned head_dim) {
  return head_dim > 128 ? WideShapeOf<256>::Type::kRows : WideShapeOf<128>::Type::kRows;
}

/// The tiles of a plan, by the shape that suits them. An item that has more rows (of batch rows
/// times query heads per KV head) than a tile reads its keys once for each of its tiles. In fast
/// mode, items of few rows are for the vector kernel.
struct AttentionTiles {
  std::vector<AttentionTileRef> narrow = {}, wide = {}, vector = {};
  std::uint32_t vector_rows = 0;  // of an item of `vector` at most

  AttentionTiles(const device::AttentionPlan& plan, unsigned group, unsigned head_dim,
                 bool fast = false) {
    const unsigned most = wide_rows(head_dim);
    for (std::uint32_t item = 0; item < plan.items.size(); ++item) {
      const std::uint32_t rows = plan.items[item].row_count * group;
      if (fast && rows <= kVectorRows) {
        vector.push_back({item, 0});
        vector_rows = std::max(vector_rows, rows);
        continue;
      }
      for (std::uint32_t first = 0; first < rows; first += most) {
        const bool few = rows - first <= NarrowShape::kRows;
        (few ? narrow : wide).push_back({item, first});
      }
    }
  }
};

/// Attention over the tiles, in two launches that do not depend on each other. `narrow` and `wide`
/// lie in device memory. Merging comes after: attention_merge.
template <class T, class Stored, unsigned kDim>
void attention_tiles(Stream stream, PagedAttentionParams params, const AttentionTileRef* narrow,
                     unsigned narrow_count, const AttentionTileRef* wide, unsigned wide_count) {
  INCIPIT_CHECK(params.head_dim == kDim && params.heads % params.kv_heads == 0);
  INCIPIT_CHECK(params.plan.segment_tokens % kMaxTileKeys == 0 && params.exp_scale > 0.0f);
  INCIPIT_CHECK(params.q_stride % 4 == 0 && params.out_stride % 4 == 0);
  const auto launch_tiles = [&]<class Shape>(Shape, const AttentionTileRef* tiles, unsigned count) {
    params.tiles = tiles;
    launch(stream,
           {.blocks_x = count,
            .blocks_y = params.kv_heads,
            .threads = Shape::kThreads,
            .shared_bytes = AttentionTile<T, Stored, kDim, Shape>::kSharedBytes},
           &attention_tile_kernel<T, Stored, kDim, Shape>, params);
  };
  launch_tiles(NarrowShape(), narrow, narrow_count);
  launch_tiles(typename WideShapeOf<kDim>::Type(), wide, wide_count);
}

/// Sets what scores are made of: device::AttentionParams in the kernels' terms.
inline void set_scores(PagedAttentionParams& params, float scale, float soft_cap, unsigned window,
                       const float* alibi_slopes) {
  const bool bent = soft_cap > 0.0f || alibi_slopes != nullptr;
  params.exp_scale = bent ? 1.0f : scale * kLog2E;
  params.score_scale = soft_cap > 0.0f ? scale / soft_cap : scale * kLog2E;
  params.soft_cap = soft_cap * kLog2E;
  params.alibi_slopes = alibi_slopes;
  params.window = window;
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ATTENTION_CUH_
