// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ROPE_CUH_
#define INCIPIT_CUDA_KERNELS_ROPE_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"
#include "device/device.h"

namespace incipit::cuda {

/// T: float, F16 or BF16. Strides in elements.
template <class T>
struct RopeParams {
  T* x = nullptr;  // [rows, heads * head_dim]
  std::int64_t x_stride = 0;
  const float* angles = nullptr;  // [rows, 2 * half]: cosines, then sines
  std::int64_t angles_stride = 0;
  unsigned rows = 0;
  unsigned heads = 0;
  unsigned head_dim = 0;
  unsigned half = 0;  // pairs of a head that turn, at most head_dim / 2; the rest of a head stays
};

/// One thread per pair: (a, b) becomes (a cos - b sin, b cos + a sin), each product rounded, as on
/// the CPU.
template <class T, device::RopePairs kPairs, unsigned kThreads>
INCIPIT_KERNEL(kThreads)
rope_kernel(RopeParams<T> params) {
  using namespace prim;
  const std::int64_t row = block_x();
  const unsigned index = block_y() * kThreads + thread_x();
  if (index >= params.heads * params.half) return;
  const unsigned head = index / params.half, pair = index % params.half;
  const float* const angles = params.angles + row * params.angles_stride;
  const float cosine = load_constant(angles + pair);
  const float sine = load_constant(angles + params.half + pair);
  T* const first = params.x + row * params.x_stride + std::int64_t{head} * params.head_dim;
  T* const a = first + (kPairs == device::RopePairs::kHalves ? pair : 2 * pair);
  T* const b = a + (kPairs == device::RopePairs::kHalves ? params.half : 1);
  const float old_a = to_float(load(a)), old_b = to_float(load(b));
  store(a, from_float<T>(old_a * cosine - old_b * sine));
  store(b, from_float<T>(old_b * cosine + old_a * sine));
}

template <class T>
void rope(Stream stream, const RopeParams<T>& params, device::RopePairs pairs) {
  constexpr unsigned kThreads = 128;
  const LaunchShape shape = {.blocks_x = params.rows,
                             .blocks_y = (params.heads * params.half + kThreads - 1) / kThreads,
                             .threads = kThreads};
  launch(stream, shape,
         pairs == device::RopePairs::kHalves
             ? &rope_kernel<T, device::RopePairs::kHalves, kThreads>
             : &rope_kernel<T, device::RopePairs::kAdjacent, kThreads>,
         params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ROPE_CUH_
