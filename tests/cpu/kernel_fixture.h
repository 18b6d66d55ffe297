// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CPU_KERNEL_FIXTURE_H_
#define INCIPIT_TESTS_CPU_KERNEL_FIXTURE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/machine.h"
#include "cpu/kernels.h"
#include "support/random_matrix.h"

// What the tests of the kernels share: the paths of this machine, and weights and activations in
// the form that a path wants.

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

/// As the default mode has it.
constexpr float kFineRatio = 9.0f;

/// The rows of x as the products of a path read them.
inline std::vector<cpu::RowBlock> quantize(const cpu::Kernels& kernels, tensor::ConstMatrix x) {
  std::vector<cpu::RowBlock> blocks(x.rows * (x.columns / cpu::kBlock));
  const cpu::RowGroups groups(x.rows, kernels.group_rows);
  kernels.quantize_groups(x, kFineRatio, 0, groups.count, blocks.data());
  return blocks;
}

/// What input k of a block counts as, in units of the low digit.
inline int integer_of(const cpu::RowBlock& block, std::size_t k) {
  return 128 * block.high[k] + block.low[k];
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CPU_KERNEL_FIXTURE_H_
