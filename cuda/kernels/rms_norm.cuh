// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_RMS_NORM_CUH_
#define INCIPIT_CUDA_KERNELS_RMS_NORM_CUH_

#include "cuda/kernels/row_norm.cuh"

namespace incipit::cuda {

/// out = h / sqrt(mean(h^2) + epsilon) * weight. A thread adds up its squares in ascending order,
/// then prim::sum_block.
template <class T, unsigned kThreads>
INCIPIT_KERNEL(kThreads)
rms_norm_kernel(NormParams<T> params) {
  using namespace prim;
  INCIPIT_SHARED(float[kThreads / kWarpLanes], scratch);
  const std::int64_t row = block_x();
  float squares = 0.0f;
  const Row<T> h = first_pass<T, kThreads>(params, row, [&](const auto& group, unsigned) {
    for (const T& value : group.values) {
      squares = fma_rn(to_float(value), to_float(value), squares);
    }
  });
  const float sum = sum_block<kThreads>(squares, scratch);
  const float mean = divide_rn(sum, static_cast<float>(params.columns));
  const float scale = divide_rn(1.0f, sqrt_rn(mean + params.epsilon));
  last_pass<T, kThreads>(params, row, h, [&](float value) { return value * scale; });
}

template <class T>
void rms_norm(Stream stream, const NormParams<T>& params) {
  launch_norm(stream, params, &rms_norm_kernel<T, 32>, &rms_norm_kernel<T, 256>);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_RMS_NORM_CUH_
