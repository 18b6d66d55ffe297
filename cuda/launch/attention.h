// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_LAUNCH_ATTENTION_H_
#define INCIPIT_CUDA_LAUNCH_ATTENTION_H_

#include "cuda/kernels/attention_params.cuh"
#include "cuda/launch/math.h"
#include "cuda/prim/launch.cuh"
#include "device/kv_layout.h"

namespace incipit::cuda {

/// The tiles of a plan in device memory; see AttentionTiles.
struct TileLists {
  const AttentionTileRef* narrow = nullptr;
  const AttentionTileRef* wide = nullptr;
  unsigned narrow_count = 0;
  unsigned wide_count = 0;
  // In fast mode.
  const AttentionTileRef* vector = nullptr;
  unsigned vector_count = 0, vector_rows = 0;
};

/// True if there are kernels for this format and head size. kInt8 is multiplied in BF16.
bool has_attention(device::KvFormat type, std::size_t head_dim) noexcept;

/// All tiles of heads of kDim values, each kind in a launch that does not depend on the others; see
/// attention_heads.h.
template <unsigned kDim>
void launch_heads(Stream stream, device::KvFormat type, const PagedAttentionParams& params,
                  const TileLists& tiles);

/// All tiles, then the merge of split rows.
void launch_attention(Stream stream, Math math, device::KvFormat type,
                      const PagedAttentionParams& params, const TileLists& tiles);

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_LAUNCH_ATTENTION_H_
