// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CPU_KERNEL_FIXTURE_H_
#define INCIPIT_TESTS_CPU_KERNEL_FIXTURE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/machine.h"
#include "cpu/kernels.h"

// What the tests of the kernels share: the paths of this machine, random numbers, and weights in
// the file's form.

namespace incipit::testing {

struct KernelPath {
  std::string name;
  const cpu::Kernels* kernels;
};

/// The scalar path first.
inline std::vector<KernelPath> kernel_paths() {
  std::vector<KernelPath> paths = {{"scalar", &cpu::scalar_kernels()}};
  if (base::cpu_features().avx2) paths.push_back({"avx2", &cpu::avx2::kernels()});
  if (base::cpu_features().avx512) paths.push_back({"avx512", &cpu::avx512::kernels()});
  return paths;
}

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
        put16(at + 2, tensor::f32_to_f16(-0.1f * value));
        [[fallthrough]];
      case tensor::DType::kQ8_0:
      case tensor::DType::kQ4_0:
        put16(at, tensor::f32_to_f16(0.01f * normal(random)));
    }
  }
  return bytes;
}

/// A weight in the layout of a path.
class TestWeight {
 public:
  TestWeight(const cpu::Kernels& kernels, tensor::DType type, std::size_t rows, std::size_t columns,
             const std::vector<std::byte>& bytes)
      : weight_(type, rows, columns, kernels.panel_outputs, arena_) {
    for (std::size_t p = 0; p < weight_.panels(); ++p) {
      weight_.pack(p, bytes.data() + weight_.first_row(p) * tensor::row_bytes(type, columns));
    }
  }
  const cpu::PackedWeight& operator*() const noexcept { return weight_; }

 private:
  cpu::WeightArena arena_;
  cpu::PackedWeight weight_;
};

/// The rows of x as the products of a path read them.
inline std::vector<cpu::RowBlock> quantize(const cpu::Kernels& kernels, tensor::ConstMatrix x) {
  std::vector<cpu::RowBlock> blocks(x.rows * (x.columns / cpu::kBlock));
  const cpu::RowGroups groups(x.rows, kernels.group_rows);
  kernels.quantize_groups(x, 0, groups.count, blocks.data());
  return blocks;
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

#endif  // INCIPIT_TESTS_CPU_KERNEL_FIXTURE_H_
