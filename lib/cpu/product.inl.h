// SPDX-License-Identifier: Apache-2.0
// Included by kernels_avx2.cpp and kernels_avx512.cpp inside their regions.

#include "cpu/product_float.inl.h"
#include "cpu/product_quantized.inl.h"

void product(const ProductPart& part) {
  using tensor::DType;
  switch (part.weight->type()) {
    case DType::kF32:
      return product_float<FloatOperands<DType::kF32>>(part);
    case DType::kF16:
      return product_float<FloatOperands<DType::kF16>>(part);
    case DType::kBF16:
      return product_float<FloatOperands<DType::kBF16>>(part);
    case DType::kQ8_0:
      return product_quantized<DType::kQ8_0>(part);
    case DType::kQ4_0:
      return product_quantized<DType::kQ4_0>(part);
    case DType::kQ4_1:
      return product_quantized<DType::kQ4_1>(part);
    case DType::kQ5_0:
      return product_quantized<DType::kQ5_0>(part);
    case DType::kQ5_1:
      return product_quantized<DType::kQ5_1>(part);
    case DType::kQ4_K:
      return product_quantized<DType::kQ4_K>(part);
    case DType::kQ5_K:
      return product_quantized<DType::kQ5_K>(part);
    case DType::kQ6_K:
      return product_quantized<DType::kQ6_K>(part);
  }
}
