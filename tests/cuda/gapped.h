// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_GAPPED_H_
#define INCIPIT_TESTS_CUDA_GAPPED_H_

#include "cuda/kernel_test.h"

namespace incipit::testing {

/// A matrix whose rows lie `gap` elements apart, with garbage in between that must stay. It ends
/// with its last row, so that AddressSanitizer sees what goes further.
template <class T>
struct Gapped {
  Gapped(unsigned rows_in, unsigned columns_in, unsigned gap, unsigned seed, float scale = 1.0f)
      : rows(rows_in), columns(columns_in), stride(columns_in + gap) {
    std::mt19937 random(seed);
    values = random_values<T>(random, rows == 0 ? 0 : (rows - 1) * stride + columns, scale);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % stride >= columns) values[i] = rounded<T>(kGarbage);
    }
  }

  double at(std::size_t row, std::size_t column) const {
    return value_of(values[row * stride + column]);
  }
  /// The matrix with get(row, column) as its elements.
  template <class Get>
  std::vector<double> with(const Get& get) const {
    std::vector<double> all(values.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::size_t row = i / stride, column = i % stride;
      all[i] = column < columns ? get(row, column) : value_of(rounded<T>(kGarbage));
    }
    return all;
  }

  static constexpr float kGarbage = -987.0f;
  unsigned rows, columns, stride;
  std::vector<T> values;
};

/// Shapes that hurt: widths around those of a group, a warp and a block, aligned and not.
struct RowShape {
  unsigned columns, gap;
};
inline std::vector<RowShape> row_shapes() {
  std::vector<RowShape> shapes;
  for (const unsigned columns : {1u, 4u, 7u, 8u, 33u, 256u, 257u, 576u, 2056u}) {
    for (const unsigned gap : {0u, 3u, 8u}) shapes.push_back({columns, gap});
  }
  return shapes;
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_GAPPED_H_
