// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_WEIGHT_TYPES_H_
#define INCIPIT_TESTS_SUPPORT_WEIGHT_TYPES_H_

#include <cstddef>

#include "tensor/dtype.h"

namespace incipit::test {

inline constexpr tensor::DType kFloatTypes[] = {tensor::DType::kF32, tensor::DType::kF16,
                                                tensor::DType::kBF16};
inline constexpr tensor::DType kQuantizedTypes[] = {
    tensor::DType::kQ8_0, tensor::DType::kQ4_0, tensor::DType::kQ4_1, tensor::DType::kQ5_0,
    tensor::DType::kQ5_1, tensor::DType::kQ4_K, tensor::DType::kQ5_K, tensor::DType::kQ6_K};
/// Every type that a weight can have.
inline constexpr tensor::DType kWeightTypes[] = {
    tensor::DType::kF32,  tensor::DType::kF16,  tensor::DType::kBF16, tensor::DType::kQ8_0,
    tensor::DType::kQ4_0, tensor::DType::kQ4_1, tensor::DType::kQ5_0, tensor::DType::kQ5_1,
    tensor::DType::kQ4_K, tensor::DType::kQ5_K, tensor::DType::kQ6_K};

/// As many columns as are asked for, or what makes whole blocks of them.
inline std::size_t whole_blocks(tensor::DType type, std::size_t columns) {
  const std::size_t block = tensor::block_elements(type);
  return (columns + block - 1) / block * block;
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_WEIGHT_TYPES_H_
