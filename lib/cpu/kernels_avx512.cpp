// SPDX-License-Identifier: Apache-2.0
#include "base/target.h"

#if INCIPIT_CPU_X86

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"
#include "cpu/kv_order.h"
#include "cpu/simd_avx512.h"

namespace incipit::cpu::avx512 {
INCIPIT_TARGET_BEGIN(INCIPIT_ISA_AVX512)
namespace {

#include "cpu/append_kv.inl.h"
#include "cpu/dot_avx512.inl.h"
#include "cpu/product.inl.h"
#include "cpu/quantize.inl.h"
#include "cpu/row_operations.inl.h"

}  // namespace
INCIPIT_TARGET_END

const Kernels& kernels() noexcept {
  static constexpr Kernels kKernels = {
      .panel_outputs = kPanelOutputs,
      .group_rows = kTileRows,
      .quantize_groups = quantize_groups,
      .round_rows = nullptr,
      .product = product,
      .rms_norm = rms_norm,
      .layer_norm = layer_norm,
      .add = add_rows,
      .rope = rope,
      .activate = activate,
      .soft_cap = soft_cap,
      .append_kv = append_kv,
  };
  return kKernels;
}

}  // namespace incipit::cpu::avx512

#endif  // INCIPIT_CPU_X86
