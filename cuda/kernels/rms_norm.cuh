// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_RMS_NORM_CUH_
#define INCIPIT_CUDA_KERNELS_RMS_NORM_CUH_

#include "cuda/prim/block_reduce.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"

namespace incipit::cuda {

/// T: float, F16 or BF16. Strides in elements; rows may be views into wider matrices.
template <class T>
struct RmsNormParams {
  const T* x = nullptr;  // [rows, columns]
  std::int64_t x_stride = 0;
  T* residual = nullptr;  // [rows, columns] or null: x is added to it first, and the sum is kept
  std::int64_t residual_stride = 0;
  const float* weight = nullptr;  // [columns]
  T* out = nullptr;               // [rows, columns]; may be x
  std::int64_t out_stride = 0;
  unsigned rows = 0;
  unsigned columns = 0;
  float epsilon = 0.0f;
};

/// One block per row: out = h / sqrt(mean(h^2) + epsilon) * weight, with h = x or residual + x
/// rounded to T. A thread adds up its squares in ascending order, then prim::sum_block.
template <class T, unsigned kThreads>
INCIPIT_KERNEL(kThreads)
rms_norm_kernel(RmsNormParams<T> params) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<T>;
  INCIPIT_SHARED(float[kThreads / kWarpLanes], scratch);
  const std::int64_t row = block_x();
  const T* x = params.x + row * params.x_stride;
  std::int64_t stride = params.x_stride;
  float squares = 0.0f;
  if (params.residual != nullptr) {
    T* const sum = params.residual + row * params.residual_stride;
    const bool packed = is_packed(x, stride) && is_packed(sum, params.residual_stride);
    for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
      const auto a = load_group(sum + first, count, packed);
      const auto b = load_group(x + first, count, packed);
      Pack<T, kWidth> h;
      for (unsigned i = 0; i < kWidth; ++i) {
        h[i] = from_float<T>(to_float(a[i]) + to_float(b[i]));
        squares = fma_rn(to_float(h[i]), to_float(h[i]), squares);
      }
      store_group(sum + first, h, count, packed);
    });
    x = sum;  // each thread reads back what it wrote itself
    stride = params.residual_stride;
  } else {
    for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
      const auto h = load_group(x + first, count, is_packed(x, stride));
      for (unsigned i = 0; i < kWidth; ++i) {
        squares = fma_rn(to_float(h[i]), to_float(h[i]), squares);
      }
    });
  }
  const float mean =
      divide_rn(sum_block<kThreads>(squares, scratch), static_cast<float>(params.columns));
  const float scale = divide_rn(1.0f, sqrt_rn(mean + params.epsilon));
  T* const out = params.out + row * params.out_stride;
  const bool packed = is_packed(x, stride) && is_packed(out, params.out_stride);
  for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
    const auto h = load_group(x + first, count, packed);
    Pack<T, kWidth> y;
    for (unsigned i = 0; i < kWidth; ++i) {
      const float weight = i < count ? load_constant(params.weight + first + i) : 0.0f;
      y[i] = from_float<T>(to_float(h[i]) * scale * weight);
    }
    store_group(out + first, y, count, packed);
  });
}

/// Narrow rows (norms of heads) take one warp. The width alone decides, so a row has one result.
template <class T>
void rms_norm(Stream stream, const RmsNormParams<T>& params) {
  if (params.columns <= 256) {
    launch(stream, {.blocks_x = params.rows, .threads = 32}, &rms_norm_kernel<T, 32>, params);
  } else {
    launch(stream, {.blocks_x = params.rows, .threads = 256}, &rms_norm_kernel<T, 256>, params);
  }
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_RMS_NORM_CUH_
