// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_LAUNCH_ATTENTION_HEADS_H_
#define INCIPIT_CUDA_LAUNCH_ATTENTION_HEADS_H_

#include "cuda/kernels/attention.cuh"
#include "cuda/launch/attention.h"

// The kernels of one head size. Each size is compiled in one of the sources attention_*.cpp, and
// there only: they take longer than all else.

namespace incipit::cuda {

template <class T, class Stored, unsigned kDim>
void launch_tiles(Stream stream, const PagedAttentionParams& params, const TileLists& tiles) {
  attention_tiles<T, Stored, kDim>(stream, params, tiles.narrow, tiles.narrow_count, tiles.wide,
                                   tiles.wide_count);
  attention_vectors<Stored, kDim>(stream, params, tiles.vector, tiles.vector_count,
                                  tiles.vector_rows);
}

template <unsigned kDim>
void launch_heads(Stream stream, device::KvFormat type, const PagedAttentionParams& params,
                  const TileLists& tiles) {
  switch (type) {
    case device::KvFormat::kF16:
      return launch_tiles<F16, F16, kDim>(stream, params, tiles);
    case device::KvFormat::kBF16:
      return launch_tiles<BF16, BF16, kDim>(stream, params, tiles);
    case device::KvFormat::kInt8:
      return launch_tiles<BF16, std::int8_t, kDim>(stream, params, tiles);
    case device::KvFormat::kF32:
      INCIPIT_CHECK(type != device::KvFormat::kF32);
  }
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_LAUNCH_ATTENTION_HEADS_H_
