// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_RANDOM_MATRIX_H_
#define INCIPIT_TESTS_SUPPORT_RANDOM_MATRIX_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "tensor/quantized_blocks.h"
#include "tensor/view.h"

// Random activations and weights, and views of them, for tests of devices and their kernels.

namespace incipit::testing {

inline std::vector<float> random_floats(std::mt19937& random, std::size_t count,
                                        float scale = 1.0f) {
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(count);
  for (float& value : out) value = normal(random);
  return out;
}

/// Rows of a weight as a file holds them: any integers, scales and minima of common sizes.
inline std::vector<std::byte> random_weight(std::mt19937& random, tensor::DType type,
                                            std::size_t rows, std::size_t columns) {
  std::vector<std::byte> bytes(rows * tensor::row_bytes(type, columns));
  std::normal_distribution<float> normal;
  const auto put16 = [&](std::size_t at, std::uint16_t value) {
    std::memcpy(bytes.data() + at, &value, 2);
  };
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (std::size_t at = 0; at < bytes.size(); at += tensor::block_bytes(type)) {
    const float value = normal(random);
    switch (type) {
      case tensor::DType::kF32:
        std::memcpy(bytes.data() + at, &value, 4);
        break;
      case tensor::DType::kF16:
        put16(at, tensor::f32_to_f16(value));
        break;
      case tensor::DType::kBF16:
        put16(at, tensor::f32_to_bf16(value));
        break;
      case tensor::DType::kQ4_1:
      case tensor::DType::kQ5_1:
        put16(at + 2, tensor::f32_to_f16(-0.1f * value));
        [[fallthrough]];
      case tensor::DType::kQ8_0:
      case tensor::DType::kQ4_0:
      case tensor::DType::kQ5_0:
        put16(at, tensor::f32_to_f16(0.01f * normal(random)));
        break;
      case tensor::DType::kQ4_K:
      case tensor::DType::kQ5_K:
        put16(at + 2, tensor::f32_to_f16(0.003f * value));
        put16(at, tensor::f32_to_f16(0.0003f * normal(random)));
        break;
      case tensor::DType::kQ6_K:
        put16(at + offsetof(tensor::BlockQ6_K, d), tensor::f32_to_f16(0.0001f * value));
    }
  }
  return bytes;
}

inline tensor::ConstMatrix view(const std::vector<float>& values, std::size_t columns) {
  return {values.data(), values.size() / columns, columns, columns};
}
inline tensor::Matrix view(std::vector<float>& values, std::size_t columns) {
  return {values.data(), values.size() / columns, columns, columns};
}

/// Equal to the last bit; NaNs of any payload are equal.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_SUPPORT_RANDOM_MATRIX_H_
