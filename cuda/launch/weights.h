// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_LAUNCH_WEIGHTS_H_
#define INCIPIT_CUDA_LAUNCH_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "cuda/gemm/gemm.h"
#include "cuda/launch/math.h"
#include "cuda/prim/launch.cuh"
#include "tensor/dtype.h"
#include "tensor/view.h"

// Weight matrices as the GPU keeps them, and what is done with them.

namespace incipit::cuda {

enum class WeightKind : std::uint8_t {
  kF32,  // row-major, multiplied in f32
  kF16,  // row-major, rows padded with zeros to whole 16 bytes; the rest: see CodedWeight
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,  // Q4_K, too
  kQ6_K
};

/// How a file's matrix is kept. Types without a coding of their own (Q5_*) become F16; where there
/// are no BF16 products, BF16 becomes F32.
WeightKind kind_of(tensor::DType type, bool has_bf16) noexcept;

/// A weight in memory of the device.
struct WeightView {
  WeightKind kind = WeightKind::kF32;
  const std::byte* data = nullptr;
  unsigned outputs = 0;
  unsigned columns = 0;
};

std::size_t weight_bytes(WeightKind kind, std::size_t outputs, std::size_t columns);

/// Rows of the file as they are kept. Whole tiles of 8 rows, or the last ones: `out` has
/// weight_bytes() of them, all zero.
void pack_weight(WeightKind kind, tensor::DType type, std::size_t rows, std::size_t columns,
                 base::Bytes bytes, std::span<std::byte> out);

/// out[i] = weight row ids[i], times scale.
void launch_embed(Stream stream, const WeightView& weight, const std::int32_t* ids, float scale,
                  tensor::Matrix out);

/// The type to which the input of a product is rounded first.
enum class InputType : std::uint8_t { kF32, kF16, kBF16 };
InputType input_type(WeightKind kind) noexcept;

/// Rounded rows of an input, and a factor for each; without data where the type is f32.
struct RoundedInput {
  std::byte* values = nullptr;  // [rows, rounded columns] of 16 bits
  float* scales = nullptr;      // [rows]
};
std::size_t rounded_bytes(std::size_t rows, std::size_t columns);

void launch_round(Stream stream, InputType type, tensor::ConstMatrix x, const RoundedInput& out);

/// The same as a library takes it: of kF16 and kBF16, without scales and bias.
GemmParams gemm_params(const WeightView& weight, const RoundedInput& rounded, tensor::Matrix out);

/// What is left to do then: out = out * scale of the row + bias, which may be null.
void launch_scale(Stream stream, const float* scales, const float* bias, tensor::Matrix out);

/// out = x weight^T + bias. `rounded` is x rounded to input_type(). There are exact kernels only so
/// far, whatever `math`.
void launch_product(Stream stream, Math math, const WeightView& weight, tensor::ConstMatrix x,
                    const RoundedInput& rounded, const float* bias, tensor::Matrix out);

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_LAUNCH_WEIGHTS_H_
