// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_GEMM_GEMM_H_
#define INCIPIT_CUDA_GEMM_GEMM_H_

#include <cstddef>
#include <span>

namespace incipit::cuda {

struct StreamRef;

/// out = x * weight^T in memory of the device; sums are f32. Strides in elements, from row to row.
struct GemmParams {
  bool bf16 = false;             // both factors; else they are F16
  const void* x = nullptr;       // [rows, depth]
  const void* weight = nullptr;  // [outputs, depth]
  float* out = nullptr;          // [rows, outputs]
  std::size_t x_stride = 0, weight_stride = 0, out_stride = 0;
  std::size_t rows = 0, outputs = 0, depth = 0;
};

/// Products of a vendor's library, which picks a kernel by the shape: for fast mode. One thread
/// calls.
class Gemm {
 public:
  virtual ~Gemm() = default;

  /// What it likes to have; the same always.
  virtual std::size_t workspace_bytes() const noexcept = 0;

  /// Queues a product, for which the workspace is its own; takes no memory of the device. False:
  /// the library does not do this one, and nothing is queued. Throws as Runtime.
  virtual bool multiply(StreamRef stream, const GemmParams& params,
                        std::span<std::byte> workspace) = 0;
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_GEMM_GEMM_H_
