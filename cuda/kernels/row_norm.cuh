// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ROW_NORM_CUH_
#define INCIPIT_CUDA_KERNELS_ROW_NORM_CUH_

#include "cuda/prim/block_reduce.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"

// What the norms of rows share.

namespace incipit::cuda {

/// T: float, F16 or BF16. Strides in elements; rows may be views into wider matrices.
template <class T>
struct NormParams {
  const T* x = nullptr;  // [rows, columns]
  std::int64_t x_stride = 0;
  T* residual = nullptr;  // [rows, columns] or null: x is added to it first, and the sum is kept
  std::int64_t residual_stride = 0;
  const float* weight = nullptr;  // [columns]
  const float* bias = nullptr;    // [columns] or null
  T* out = nullptr;               // [rows, columns]; may be x
  std::int64_t out_stride = 0;
  unsigned rows = 0;
  unsigned columns = 0;
  float epsilon = 0.0f;
};

/// A row in global memory.
template <class T>
struct Row {
  const T* data;
  bool packed;  // is_packed
};

/// Calls visit(group, count) for the groups of the row that the norm is of, which is x, or
/// residual + x rounded to T and stored there. Returns that row: each thread may read what it saw.
template <class T, unsigned kThreads, class Visit>
INCIPIT_DEVICE Row<T> first_pass(const NormParams<T>& params, std::int64_t row,
                                 const Visit& visit) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<T>;
  const T* const x = params.x + row * params.x_stride;
  const bool packed = is_packed(x);
  if (params.residual == nullptr) {
    for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
      visit(load_group<kWidth>(x + first, count, packed), count);
    });
    return {x, packed};
  }
  T* const sum = params.residual + row * params.residual_stride;
  const bool sum_packed = is_packed(sum);
  for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
    const auto a = load_group<kWidth>(sum + first, count, sum_packed);
    const auto b = load_group<kWidth>(x + first, count, packed);
    Pack<T, kWidth> h;
    for (unsigned i = 0; i < kWidth; ++i) h[i] = from_float<T>(to_float(a[i]) + to_float(b[i]));
    visit(h, count);
    store_group<kWidth>(sum + first, h, count, sum_packed);
  });
  return {sum, sum_packed};
}

/// out = scaled(h) * weight + bias, element by element.
template <class T, unsigned kThreads, class Scaled>
INCIPIT_DEVICE void last_pass(const NormParams<T>& params, std::int64_t row, const Row<T>& h,
                              const Scaled& scaled) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<T>;
  T* const out = params.out + row * params.out_stride;
  const bool packed = is_packed(out);
  const bool weight_packed = is_packed(params.weight);
  const bool bias_packed = is_packed(params.bias);
  for_each_group<kWidth, kThreads>(params.columns, [&](unsigned first, unsigned count) {
    const auto in = load_group<kWidth>(h.data + first, count, h.packed);
    float weight[kWidth], bias[kWidth] = {};
    load_floats(weight, params.weight + first, count, weight_packed);
    if (params.bias != nullptr) load_floats(bias, params.bias + first, count, bias_packed);
    Pack<T, kWidth> y;
    for (unsigned i = 0; i < kWidth; ++i) {
      const float product = scaled(to_float(in[i])) * weight[i];
      y[i] = from_float<T>(params.bias != nullptr ? product + bias[i] : product);
    }
    store_group<kWidth>(out + first, y, count, packed);
  });
}

/// One block per row; narrow rows (norms of heads) take one warp. The width alone decides, so a row
/// has one result.
template <class T>
void launch_norm(Stream stream, const NormParams<T>& params, void (*narrow)(NormParams<T>),
                 void (*wide)(NormParams<T>)) {
  const bool is_narrow = params.columns <= 256;
  launch(stream, {.blocks_x = params.rows, .threads = is_narrow ? 32u : 256u},
         is_narrow ? narrow : wide, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ROW_NORM_CUH_
