// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_SCALE_ROWS_CUH_
#define INCIPIT_CUDA_KERNELS_SCALE_ROWS_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"
#include "cuda/prim/memory.cuh"

// What a product by a library still lacks: the factors of its rounded rows, and the bias.

namespace incipit::cuda {

struct ScaleRowsParams {
  float* x = nullptr;  // [rows, columns]
  std::int64_t x_stride = 0;
  const float* scales = nullptr;  // [rows]
  const float* bias = nullptr;    // [columns] or null
  unsigned rows = 0, columns = 0;
};

/// x = x * scale + bias, as the products of exact mode end. One block per 256 groups of a row.
template <unsigned kThreads>
INCIPIT_KERNEL(kThreads)
scale_rows_kernel(ScaleRowsParams params) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<float>;
  const std::int64_t row = block_x();
  const unsigned first = (block_y() * kThreads + thread_x()) * kWidth;
  if (first >= params.columns) return;
  const unsigned rest = params.columns - first;
  const unsigned count = rest < kWidth ? rest : kWidth;
  float* const x = params.x + row * params.x_stride + first;
  const bool packed = is_packed(x);
  const float scale = load_constant(params.scales + row);
  float bias[kWidth] = {};
  if (params.bias != nullptr) {
    load_floats(bias, params.bias + first, count, is_packed(params.bias));
  }
  auto group = load_group<kWidth>(x, count, packed);
  for (unsigned i = 0; i < kWidth; ++i) group[i] = fma_rn(group[i], scale, bias[i]);
  store_group<kWidth>(x, group, count, packed);
}

inline void scale_rows(Stream stream, const ScaleRowsParams& params) {
  constexpr unsigned kThreads = 256, kColumns = kThreads * prim::kPackOf<float>;
  launch(stream,
         {.blocks_x = params.rows,
          .blocks_y = (params.columns + kColumns - 1) / kColumns,
          .threads = kThreads},
         &scale_rows_kernel<kThreads>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_SCALE_ROWS_CUH_
