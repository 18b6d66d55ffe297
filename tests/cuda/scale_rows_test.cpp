// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/scale_rows.cuh"

#include "cuda/gapped.h"

using namespace incipit;
using namespace incipit::testing;

TEST_CASE("rows are multiplied by their factors, and the bias is added") {
  for (const RowShape& shape : row_shapes()) {
    for (const bool biased : {false, true}) {
      const Gapped<float> x(3, shape.columns, shape.gap, 1, 6.0f);
      std::mt19937 random(2);
      const auto bias = random_values<float>(random, shape.columns);
      const std::vector<float> scales = {0.25f, 1.0f, 8.0f};
      const auto got = run([&](cuda::Stream stream) {
        DeviceArray<float> device_x(x.values), device_bias(bias), device_scales(scales);
        cuda::ScaleRowsParams params;
        params.x = device_x.data();
        params.x_stride = x.stride;
        params.scales = device_scales.data();
        if (biased) params.bias = device_bias.data();
        params.rows = x.rows;
        params.columns = x.columns;
        cuda::scale_rows(stream, params);
        return device_x.read();
      });
      const auto wanted = x.with([&](std::size_t row, std::size_t column) {
        return x.at(row, column) * value_of(scales[row]) + (biased ? value_of(bias[column]) : 0.0);
      });
      CAPTURE(shape.columns, shape.gap, biased);
      check_near(got, wanted, 1e-7, 1e-7);
    }
  }
}
