// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_COPY_BLOCKS_CUH_
#define INCIPIT_CUDA_KERNELS_COPY_BLOCKS_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"
#include "device/kv_layout.h"

namespace incipit::cuda {

struct CopyBlocksParams {
  std::byte* pool = nullptr;              // aligned to 16 bytes
  std::int64_t block_bytes = 0;           // a multiple of 16
  const device::BlockId* from = nullptr;  // [pairs]
  const device::BlockId* to = nullptr;    // [pairs]; none of them among `from`
  unsigned pairs = 0;
};

/// 16 KiB of a pair per block, with four loads of a thread under way at once.
template <unsigned kThreads>
INCIPIT_KERNEL(kThreads)
copy_blocks_kernel(CopyBlocksParams params) {
  using namespace prim;
  using Group = Pack<std::uint32_t, 4>;
  constexpr unsigned kDepth = 4;
  const std::int64_t groups = params.block_bytes / 16;
  const auto block = [&](device::BlockId id) {
    return reinterpret_cast<Group*>(params.pool + std::int64_t{id} * params.block_bytes);
  };
  const Group* const from = block(load(params.from + block_x()));
  Group* const to = block(load(params.to + block_x()));
  const std::int64_t first = std::int64_t{block_y()} * kThreads * kDepth + thread_x();
  Group held[kDepth] = {};
  for (unsigned i = 0; i < kDepth; ++i) {
    const std::int64_t at = first + std::int64_t{i} * kThreads;
    if (at < groups) held[i] = load(from + at);
  }
  for (unsigned i = 0; i < kDepth; ++i) {
    const std::int64_t at = first + std::int64_t{i} * kThreads;
    if (at < groups) store(to + at, held[i]);
  }
}

inline void copy_blocks(Stream stream, const CopyBlocksParams& params) {
  constexpr unsigned kThreads = 256, kBytes = kThreads * 4 * 16;
  launch(stream,
         {.blocks_x = params.pairs,
          .blocks_y = static_cast<unsigned>((params.block_bytes + kBytes - 1) / kBytes),
          .threads = kThreads},
         &copy_blocks_kernel<kThreads>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_COPY_BLOCKS_CUH_
