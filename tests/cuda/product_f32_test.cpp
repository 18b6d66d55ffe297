// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/product_f32.cuh"

#include <vector>

#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

struct Case {
  unsigned rows, outputs, depth;
  bool bias;
};

/// `values` as rows of `stride` elements, NaN between them.
std::vector<float> strided(const std::vector<float>& values, unsigned columns, unsigned stride) {
  std::vector<float> out(values.size() / columns * stride, NAN);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[i / columns * stride + i % columns] = values[i];
  }
  return out;
}

std::vector<float> product(cuda::Stream stream, const Case& c, const std::vector<float>& x,
                           const std::vector<float>& weight, const std::vector<float>& bias) {
  const unsigned x_stride = c.depth + 3, out_stride = c.outputs + 1;
  DeviceArray<float> on_x(strided(x, c.depth, x_stride)), on_weight(weight), on_bias(bias),
      out(std::size_t{c.rows} * out_stride, 0.0f);
  cuda::ProductF32Params params;
  params.x = on_x.data();
  params.x_stride = x_stride;
  params.weight = on_weight.data();
  params.bias = c.bias ? on_bias.data() : nullptr;
  params.out = out.data();
  params.out_stride = out_stride;
  params.rows = c.rows;
  params.outputs = c.outputs;
  params.depth = c.depth;
  cuda::product_f32(stream, params);
  const std::vector<float> padded = out.read();
  std::vector<float> dense;
  for (unsigned i = 0; i < c.rows; ++i) {
    const auto row = padded.begin() + static_cast<std::ptrdiff_t>(std::size_t{i} * out_stride);
    dense.insert(dense.end(), row, row + c.outputs);
    CHECK(row[c.outputs] == 0.0f);
  }
  return dense;
}

}  // namespace

TEST_CASE("products in f32 are those of float64") {
  for (const Case& c : {Case{1, 1, 1, false}, Case{3, 65, 33, true}, Case{17, 130, 64, false},
                        Case{65, 64, 31, true}}) {
    std::mt19937 random(c.rows);
    const auto x = random_values<float>(random, std::size_t{c.rows} * c.depth);
    const auto weight = random_values<float>(random, std::size_t{c.outputs} * c.depth);
    const auto bias = random_values<float>(random, c.outputs);
    std::vector<double> wanted;
    for (unsigned i = 0; i < c.rows; ++i) {
      for (unsigned j = 0; j < c.outputs; ++j) {
        double sum = c.bias ? value_of(bias[j]) : 0.0;
        for (unsigned k = 0; k < c.depth; ++k) {
          sum += value_of(x[std::size_t{i} * c.depth + k]) *
                 value_of(weight[std::size_t{j} * c.depth + k]);
        }
        wanted.push_back(sum);
      }
    }
    CAPTURE(c.rows, c.outputs, c.depth);
    check_near(run([&](cuda::Stream stream) { return product(stream, c, x, weight, bias); }),
               wanted, 1e-6, 4e-6);
  }
}

TEST_CASE("a row of a product has the same bits in any company") {
  const Case all = {40, 70, 100, true};
  std::mt19937 random(1);
  const auto x = random_values<float>(random, std::size_t{all.rows} * all.depth);
  const auto weight = random_values<float>(random, std::size_t{all.outputs} * all.depth);
  const auto bias = random_values<float>(random, all.outputs);
  const auto wanted =
      run([&](cuda::Stream stream) { return product(stream, all, x, weight, bias); });
  for (const unsigned row : {0u, 15u, 39u}) {
    const auto part = [](const std::vector<float>& values, unsigned index, unsigned columns) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(index * columns);
      return std::vector<float>(first, first + columns);
    };
    const Case alone = {1, all.outputs, all.depth, true};
    const auto got = run([&](cuda::Stream stream) {
      return product(stream, alone, part(x, row, all.depth), weight, bias);
    });
    CHECK(same_bits(got, part(wanted, row, all.outputs)));
  }
}
