// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_BLOCK_REDUCE_CUH_
#define INCIPIT_CUDA_PRIM_BLOCK_REDUCE_CUH_

#include "cuda/prim/memory.cuh"
#include "cuda/prim/warp.cuh"

namespace incipit::cuda::prim {

/// Combines the values of a block of kThreads: the lanes of each warp by halves, then the warps in
/// ascending order. All threads get the same bits. `scratch` is shared memory [kThreads / 32], free
/// again when all threads have passed the next barrier.
template <unsigned kThreads, class T, class Combine>
INCIPIT_DEVICE T reduce_block(T value, T* scratch, const Combine& combine,
                              Site site = Site::here()) {
  static_assert(kThreads % kWarpLanes == 0);
  value = reduce_lanes(value, combine, site);
  if constexpr (kThreads == kWarpLanes) return value;
  if (lane() == 0) shared_store(&scratch[warp()], value, site);
  sync_threads(site);
  value = shared_load(&scratch[0], site);
  for (unsigned i = 1; i < kThreads / kWarpLanes; ++i) {
    value = combine(value, shared_load(&scratch[i], site));
  }
  return value;
}

template <unsigned kThreads, class T>
INCIPIT_DEVICE T sum_block(T value, T* scratch, Site site = Site::here()) {
  return reduce_block<kThreads>(
      value, scratch, [](T a, T b) { return a + b; }, site);
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_BLOCK_REDUCE_CUH_
