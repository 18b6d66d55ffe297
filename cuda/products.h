// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRODUCTS_H_
#define INCIPIT_CUDA_PRODUCTS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "cuda/launch/math.h"
#include "cuda/launch/weights.h"
#include "cuda/runtime.h"
#include "cuda/step_queue.h"
#include "cuda/workspace.h"
#include "device/device.h"

namespace incipit::cuda {

/// A weight matrix in memory of the GPU.
class CudaWeight final : public device::Weight {
 public:
  CudaWeight(WeightKind kind, std::size_t rows, std::size_t columns, device::Buffer memory)
      : Weight(rows, columns), kind_(kind), memory_(std::move(memory)) {}
  std::byte* data() const noexcept { return memory_.data(); }
  WeightKind kind() const noexcept { return kind_; }
  WeightView view() const noexcept {
    return {kind_, memory_.data(), static_cast<unsigned>(rows()), static_cast<unsigned>(columns())};
  }

 private:
  const WeightKind kind_;
  const device::Buffer memory_;
};

inline const CudaWeight& loaded(const device::Weight& weight) {
  return static_cast<const CudaWeight&>(weight);  // made by make_weight() of a device
}

/// Products of the seam: their input is rounded once, and each finds its kernel. One thread calls.
class Products {
 public:
  /// In fast mode, from so many rows on, plain weights of 16 bits are the library's: arithmetic is
  /// the limit there; with fewer rows it is the reading of the weights.
  /// Coded weights stay with our kernels, which read a quarter to a half of the bytes: the library
  /// would want an expanded copy, written and read anew in each step.
  static constexpr std::size_t kGemmRows = 128;

  Products(Runtime& runtime, StepQueue& queue, Math math, Workspace& workspace);

  /// Queues them; see device::Device::matmul().
  void multiply(tensor::ConstMatrix x, std::span<const device::Product> products);

 private:
  static constexpr std::size_t kTypes = 3;  // of InputType

  bool by_library(const WeightView& weight, std::size_t rows) const noexcept;
  bool multiply_by_library(const WeightView& weight, const RoundedInput& input,
                           const device::Product& product, std::span<std::byte> workspace);

  StepQueue& queue_;
  const Math math_;
  Workspace& workspace_;
  const std::unique_ptr<Gemm> gemm_;  // null: exact mode, or there is none
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_PRODUCTS_H_
