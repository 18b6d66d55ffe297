// SPDX-License-Identifier: Apache-2.0
#include "tensor/view.h"

#include <array>

#include "support/catch.h"

namespace incipit::tensor {
namespace {

TEST_CASE("rows are a stride apart") {
  std::array<float, 12> values = {};
  const Matrix matrix = {values.data(), 3, 2, 4};
  CHECK(matrix.row(0) == values.data());
  CHECK(matrix.row(2) == values.data() + 8);
  const Matrix front = matrix.first_rows(1);
  CHECK(front.rows == 1);
  CHECK(front.columns == 2);
  CHECK(front.stride == 4);
  const ConstMatrix readable = matrix;
  CHECK(readable.row(1) == values.data() + 4);
  CHECK(readable.rows == 3);
}

}  // namespace
}  // namespace incipit::tensor
