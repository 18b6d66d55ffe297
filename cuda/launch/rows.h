// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_LAUNCH_ROWS_H_
#define INCIPIT_CUDA_LAUNCH_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/gather_rows.cuh"
#include "cuda/kernels/row_norm.cuh"
#include "device/device.h"
#include "tensor/view.h"

// Matrices and options of the seam in the terms of kernels.

namespace incipit::cuda {

inline unsigned count(std::size_t value) { return static_cast<unsigned>(value); }
inline std::int64_t stride(std::size_t value) { return static_cast<std::int64_t>(value); }

/// Of a norm without bias or residual.
inline NormParams<float> norm_params(tensor::ConstMatrix x, std::span<const float> weight,
                                     float epsilon, tensor::Matrix out) {
  NormParams<float> params;
  params.x = x.data;
  params.x_stride = stride(x.stride);
  params.weight = weight.data();
  params.out = out.data;
  params.out_stride = stride(out.stride);
  params.rows = count(x.rows);
  params.columns = count(x.columns);
  params.epsilon = epsilon;
  return params;
}

/// out = x: what is done to it on the way is added by the caller.
inline ElementwiseParams<float> elementwise_params(tensor::ConstMatrix x, tensor::Matrix out) {
  ElementwiseParams<float> params;
  params.x = x.data;
  params.x_stride = stride(x.stride);
  params.out = out.data;
  params.out_stride = stride(out.stride);
  params.rows = count(out.rows);
  params.columns = count(out.columns);
  return params;
}

/// gather_rows of activations; its machine code is that of embeddings in F32.
void launch_gather(Stream stream, const GatherParams<float, float>& params);

inline Activation kernel_of(device::Activation activation) {
  switch (activation) {
    case device::Activation::kSilu:
      return Activation::kSilu;
    case device::Activation::kGeluTanh:
      return Activation::kGelu;
    case device::Activation::kRelu:
      break;
  }
  return Activation::kRelu;
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_LAUNCH_ROWS_H_
