// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_ELEMENTWISE_CUH_
#define INCIPIT_CUDA_KERNELS_ELEMENTWISE_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"
#include "cuda/prim/memory.cuh"

// What is done to each element of a row by itself: sums, biases, activations and caps.

namespace incipit::cuda {

enum class Activation {
  kNone,
  kSilu,  // x / (1 + e^-x)
  kGelu,  // by tanh, as GPT-2 has it
  kRelu,
  kSoftCap,  // cap * tanh(x / cap)
};

/// T: float, F16 or BF16. Strides in elements.
template <class T>
struct ElementwiseParams {
  const T* x = nullptr;  // [rows, columns]
  std::int64_t x_stride = 0;
  const float* bias = nullptr;  // [columns] or null: added to x before the activation
  const T* other = nullptr;     // [rows, columns] or null: added to what comes out, or its factor
  std::int64_t other_stride = 0;
  bool multiplies = false;  // other is a factor
  Activation activation = Activation::kNone;
  float cap = 0.0f;  // of kSoftCap
  T* out = nullptr;  // [rows, columns]; may be x or other
  std::int64_t out_stride = 0;
  unsigned rows = 0;
  unsigned columns = 0;
};

template <Activation kActivation>
INCIPIT_DEVICE float activate(float x, float cap) {
  using namespace prim;
  if constexpr (kActivation == Activation::kSilu) {
    return divide_rn(x, 1.0f + exp_f32(-x));
  } else if constexpr (kActivation == Activation::kGelu) {
    constexpr float kRoot = 0.797884560802865f;  // sqrt(2 / pi)
    const float inner = kRoot * (x + 0.044715f * (x * x * x));
    return 0.5f * x * (1.0f + tanh_f32(inner));
  } else if constexpr (kActivation == Activation::kRelu) {
    return x < 0.0f ? 0.0f : x;  // NaN stays
  } else if constexpr (kActivation == Activation::kSoftCap) {
    return cap * tanh_f32(divide_rn(x, cap));
  } else {
    return x;
  }
}

/// out = activation(x + bias) + other, or * other. One block per 256 groups of a row, so that few
/// wide rows fill a GPU, too.
template <class T, Activation kActivation, unsigned kThreads>
INCIPIT_KERNEL(kThreads)
elementwise_kernel(ElementwiseParams<T> params) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<T>;
  const std::int64_t row = block_x();
  const unsigned first = (block_y() * kThreads + thread_x()) * kWidth;
  if (first >= params.columns) return;
  const unsigned rest = params.columns - first;
  const unsigned count = rest < kWidth ? rest : kWidth;
  const T* const x = params.x + row * params.x_stride;
  T* const out = params.out + row * params.out_stride;
  auto y = load_group<kWidth>(x + first, count, is_packed(x));
  float bias[kWidth] = {};
  if (params.bias != nullptr) {
    load_floats(bias, params.bias + first, count, is_packed(params.bias));
  }
  Pack<T, kWidth> factor = {};
  if (params.other != nullptr) {
    const T* const other = params.other + row * params.other_stride;
    factor = load_group<kWidth>(other + first, count, is_packed(other));
  }
  for (unsigned i = 0; i < kWidth; ++i) {
    float value = to_float(y[i]);
    if (params.bias != nullptr) value += bias[i];
    value = activate<kActivation>(value, params.cap);
    if (params.other != nullptr) {
      value = params.multiplies ? value * to_float(factor[i]) : value + to_float(factor[i]);
    }
    y[i] = from_float<T>(value);
  }
  store_group<kWidth>(out + first, y, count, is_packed(out));
}

template <class T>
void elementwise(Stream stream, const ElementwiseParams<T>& params) {
  constexpr unsigned kThreads = 256, kColumns = kThreads * prim::kPackOf<T>;
  void (*const kernels[])(ElementwiseParams<T>) = {
      &elementwise_kernel<T, Activation::kNone, kThreads>,
      &elementwise_kernel<T, Activation::kSilu, kThreads>,
      &elementwise_kernel<T, Activation::kGelu, kThreads>,
      &elementwise_kernel<T, Activation::kRelu, kThreads>,
      &elementwise_kernel<T, Activation::kSoftCap, kThreads>};
  launch(stream,
         {.blocks_x = params.rows,
          .blocks_y = (params.columns + kColumns - 1) / kColumns,
          .threads = kThreads},
         kernels[static_cast<unsigned>(params.activation)], params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_ELEMENTWISE_CUH_
