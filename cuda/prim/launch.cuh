// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_LAUNCH_CUH_
#define INCIPIT_CUDA_PRIM_LAUNCH_CUH_

#include <string>
#include <tuple>

#include "base/check.h"
#include "cuda/prim/platform.cuh"

// How the host starts a kernel; the same call on a GPU and in the emulator.

namespace incipit::cuda {

struct LaunchShape {
  unsigned blocks_x = 1, blocks_y = 1, blocks_z = 1;
  unsigned threads = 32;         // of a block, a multiple of 32, counted by x
  std::size_t shared_bytes = 0;  // dynamic shared memory
};

/// Dynamic shared memory that a block can have on every architecture from sm_75 on.
constexpr std::size_t kSharedLimit = 64 * 1024;

#if INCIPIT_CUDA_EMULATED

using Stream = simt::Machine*;

/// Queues kernel(arguments...). Without blocks there is nothing to do.
template <class... Parameters, class... Arguments>
void launch(Stream stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (shape.blocks_x == 0 || shape.blocks_y == 0 || shape.blocks_z == 0) return;
  const std::tuple<Parameters...> values(arguments...);  // a kernel gets copies
  simt::launch(*stream, {shape.blocks_x, shape.blocks_y, shape.blocks_z}, {shape.threads, 1, 1},
               shape.shared_bytes, [&] { std::apply(kernel, values); });
}

#else

using Stream = cudaStream_t;

inline void check_launch(cudaError_t result) {
  if (result == cudaSuccess) return;
  base::throw_error(ErrorCode::kInternal,
                    std::string("a CUDA kernel did not start: ") + cudaGetErrorString(result));
}

template <class... Parameters, class... Arguments>
void launch(Stream stream, const LaunchShape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (shape.blocks_x == 0 || shape.blocks_y == 0 || shape.blocks_z == 0) return;
  constexpr std::size_t kWithoutAsking = 48 * 1024;
  if (shape.shared_bytes > kWithoutAsking) {
    check_launch(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(shape.shared_bytes)));
  }
  std::tuple<Parameters...> values(arguments...);
  std::apply(
      [&](auto&... value) {
        void* addresses[] = {&value...};
        check_launch(cudaLaunchKernel(kernel, dim3(shape.blocks_x, shape.blocks_y, shape.blocks_z),
                                      dim3(shape.threads), addresses, shape.shared_bytes, stream));
      },
      values);
}

#endif

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_PRIM_LAUNCH_CUH_
