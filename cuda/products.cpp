// SPDX-License-Identifier: Apache-2.0
#include "cuda/products.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace incipit::cuda {

using device::Product;
using tensor::ConstMatrix;

Products::Products(Runtime& runtime, StepQueue& queue, Math math, Workspace& workspace)
    : queue_(queue),
      math_(math),
      workspace_(workspace),
      gemm_(math.fast ? runtime.make_gemm() : nullptr) {}

bool Products::by_library(const WeightView& weight, std::size_t rows) const noexcept {
  return gemm_ != nullptr && rows >= kGemmRows &&
         (weight.kind == WeightKind::kF16 || weight.kind == WeightKind::kBF16);
}

bool Products::multiply_by_library(const WeightView& weight, const RoundedInput& input,
                                   const Product& product, std::span<std::byte> workspace) {
  queue_.flush();  // the library queues at once
  if (!gemm_->multiply(queue_.stream(), gemm_params(weight, input, product.out), workspace))
    return false;
  const float* const bias = product.bias.empty() ? nullptr : product.bias.data();
  // Rows in BF16 have no factor.
  if (weight.kind == WeightKind::kBF16 && bias == nullptr) return true;
  queue_.launch([scales = input.scales, bias, out = product.out](void* native) {
    launch_scale(static_cast<Stream>(native), scales, bias, out);
  });
  return true;
}

void Products::multiply(ConstMatrix x, std::span<const Product> products) {
  std::array<bool, kTypes> wanted = {};
  bool library = false;
  for (const Product& product : products) {
    const CudaWeight& weight = loaded(*product.weight);
    INCIPIT_CHECK(weight.columns() == x.columns && product.out.columns == weight.rows());
    INCIPIT_CHECK(product.out.rows == x.rows);
    INCIPIT_CHECK(product.bias.empty() || product.bias.size() == weight.rows());
    wanted[static_cast<std::size_t>(input_type(weight.kind()))] = true;
    library = library || by_library(weight.view(), x.rows);
  }
  // Twice at most, each as large: some weights want F16, others BF16.
  Pieces pieces;
  std::array<std::size_t, kTypes> values = {}, scales = {};
  for (const InputType type : {InputType::kF16, InputType::kBF16}) {
    const auto index = static_cast<std::size_t>(type);
    if (!wanted[index]) continue;
    values[index] = pieces.take(rounded_bytes(x.rows, x.columns));
    scales[index] = pieces.take(x.rows * sizeof(float));
  }
  const std::size_t own_bytes = library ? gemm_->workspace_bytes() : 0;
  const std::size_t own = pieces.take(own_bytes);
  std::byte* const memory = workspace_.take(pieces.bytes());
  std::array<RoundedInput, kTypes> rounded = {};
  for (const InputType type : {InputType::kF16, InputType::kBF16}) {
    const auto index = static_cast<std::size_t>(type);
    if (!wanted[index]) continue;
    rounded[index] = {memory + values[index], reinterpret_cast<float*>(memory + scales[index])};
    queue_.launch([x, type, out = rounded[index]](void* native) {
      launch_round(static_cast<Stream>(native), type, x, out);
    });
  }
  for (const Product& product : products) {
    const WeightView view = loaded(*product.weight).view();
    const RoundedInput input = rounded[static_cast<std::size_t>(input_type(view.kind))];
    if (by_library(view, x.rows) &&
        multiply_by_library(view, input, product, {memory + own, own_bytes})) {
      continue;
    }
    const float* const bias = product.bias.empty() ? nullptr : product.bias.data();
    queue_.launch([math = math_, x, view, input, bias, out = product.out](void* native) {
      launch_product(static_cast<Stream>(native), math, view, x, input, bias, out);
    });
  }
}

}  // namespace incipit::cuda
