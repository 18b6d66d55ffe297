// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TENSOR_VIEW_H_
#define INCIPIT_TENSOR_VIEW_H_

#include <cstddef>
#include <type_traits>

namespace incipit::tensor {

/// A row-major matrix in somebody else's memory (host or device).
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;  // elements from row to row, >= columns

  T* row(std::size_t index) const noexcept { return data + index * stride; }

  MatrixView first_rows(std::size_t count) const noexcept { return {data, count, columns, stride}; }

  operator MatrixView<const T>() const noexcept  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<T>) {
    return {data, rows, columns, stride};
  }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

}  // namespace incipit::tensor

#endif  // INCIPIT_TENSOR_VIEW_H_
