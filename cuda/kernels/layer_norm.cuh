// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_LAYER_NORM_CUH_
#define INCIPIT_CUDA_KERNELS_LAYER_NORM_CUH_

#include "cuda/kernels/row_norm.cuh"

namespace incipit::cuda {

/// out = (h - mean) / sqrt(mean((h - mean)^2) + epsilon) * weight + bias. The mean first, then the
/// squares of what is left: their difference would cancel where the mean is large.
template <class T, unsigned kThreads>
INCIPIT_KERNEL(kThreads)
layer_norm_kernel(NormParams<T> params) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<T>;
  INCIPIT_SHARED(float[kThreads / kWarpLanes], sums);
  INCIPIT_SHARED(float[kThreads / kWarpLanes], squares);
  const std::int64_t row = block_x();
  const auto columns = static_cast<float>(params.columns);
  float sum = 0.0f;
  const Row<T> h = first_pass<T, kThreads>(params, row, [&](const auto& group, unsigned) {
    for (const T& value : group.values) sum += to_float(value);
  });
  const float mean = divide_rn(sum_block<kThreads>(sum, sums), columns);
  float square = 0.0f;
  for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
    const auto group = load_group<kWidth>(h.data + first, count, h.packed);
    for (unsigned i = 0; i < kWidth; ++i) {
      const float rest = to_float(group[i]) - mean;
      if (i < count) square = fma_rn(rest, rest, square);
    }
  });
  const float variance = divide_rn(sum_block<kThreads>(square, squares), columns);
  const float scale = divide_rn(1.0f, sqrt_rn(variance + params.epsilon));
  last_pass<T, kThreads>(params, row, h, [&](float value) { return (value - mean) * scale; });
}

template <class T>
void layer_norm(Stream stream, const NormParams<T>& params) {
  launch_norm(stream, params, &layer_norm_kernel<T, 32>, &layer_norm_kernel<T, 256>);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_LAYER_NORM_CUH_
