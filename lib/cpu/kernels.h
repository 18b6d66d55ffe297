// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_KERNELS_H_
#define INCIPIT_CPU_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "cpu/packed_weight.h"
#include "cpu/quantized_rows.h"
#include "device/device.h"

namespace incipit::cpu {

using tensor::ConstMatrix;
using tensor::Matrix;

/// Columns of rows that are rounded to BF16: whole pairs, the last one filled up with a zero.
constexpr std::size_t rounded_columns(std::size_t columns) noexcept {
  return columns + columns % 2;
}

/// The outputs of some panels of one weight, for all rows: out = x * weight^T + bias.
struct ProductPart {
  const PackedWeight* weight = nullptr;
  const float* bias = nullptr;          // [weight rows] or null
  ConstMatrix x = {};                   // read by weights of float types
  const RowBlock* quantized = nullptr;  // x in groups of Kernels::group_rows; read by the others
  // [x rows, rounded_columns]: x in BF16, read by BF16 weights where Kernels::round_rows is there.
  const std::uint16_t* rounded = nullptr;
  Matrix out = {};  // [x rows, weight rows]
  std::size_t panel_begin = 0, panel_end = 0;
};

/// What one path computes. No kernel starts a thread: the device cuts the work by rows and panels.
/// A row's result depends on that row only, and each (path, weight type) has one arithmetic.
struct Kernels {
  // Outputs side by side in a packed weight; 1: the rows stay as in the file.
  std::size_t panel_outputs;
  // Rows of a group at most, see RowGroups.
  std::size_t group_rows;

  // Quantises the rows of groups [begin, end) of x; `out` is that of group 0.
  void (*quantize_groups)(ConstMatrix x, float fine_ratio, std::size_t begin, std::size_t end,
                          RowBlock* out);
  // Rounds rows [begin, end) of x to BF16; `out` is that of row 0. Null: BF16 weights meet floats.
  void (*round_rows)(ConstMatrix x, std::size_t begin, std::size_t end, std::uint16_t* out);
  void (*product)(const ProductPart& part);
  // The operations of device::Device over the rows that the views show.
  void (*rms_norm)(ConstMatrix x, const float* weight, float epsilon, Matrix out);
  void (*layer_norm)(ConstMatrix x, const float* weight, const float* bias, float epsilon,
                     Matrix out);
  void (*add)(Matrix x, ConstMatrix y);
  void (*rope)(Matrix x, std::size_t head_dim, ConstMatrix angles, device::RopePairs pairs);
  void (*activate)(device::Activation activation, ConstMatrix gate, ConstMatrix up, Matrix out);
  void (*soft_cap)(Matrix x, float cap);
  void (*append_kv)(const device::KvPoolView& pool, std::size_t layer, ConstMatrix k, ConstMatrix v,
                    const device::KvSlot* slots);
};

/// The specification: scalar/, one file per operation, for reading.
const Kernels& scalar_kernels() noexcept;

// Exist on x86-64 only; to be called where base::cpu_features() has what they need.
namespace avx2 {
const Kernels& kernels() noexcept;
}
namespace avx512 {
const Kernels& kernels() noexcept;
void use_bf16_dots(Kernels& kernels) noexcept;  // those of this path: multiply BF16 weights so
}  // namespace avx512

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_KERNELS_H_
