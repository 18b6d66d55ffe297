// SPDX-License-Identifier: Apache-2.0
#include "cpu/scalar/kernels.h"

namespace incipit::cpu {

const Kernels& scalar_kernels() noexcept {
  static constexpr Kernels kKernels = {
      .panel_outputs = 1,
      .group_rows = 1,
      .quantize_groups = scalar::quantize_groups,
      .round_rows = nullptr,
      .product = scalar::product,
      .rms_norm = scalar::rms_norm,
      .layer_norm = scalar::layer_norm,
      .add = scalar::add,
      .rope = scalar::rope,
      .activate = scalar::activate,
      .soft_cap = scalar::soft_cap,
      .append_kv = scalar::append_kv,
  };
  return kKernels;
}

}  // namespace incipit::cpu
