// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/elementwise.cuh"

#include <limits>

#include "cuda/gapped.h"

using namespace incipit;
using namespace incipit::testing;
using cuda::Activation;

namespace {

constexpr float kCap = 2.5f;

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * (1.0 + std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kSoftCap:
      return double{kCap} * std::tanh(x / double{kCap});
  }
  return 0.0;
}

struct Use {
  Activation activation;
  bool bias, other, multiplies, in_place;
};

template <class T>
void check_elementwise(const RowShape& shape, const Use& use) {
  const Gapped<T> x(3, shape.columns, shape.gap, 1, 6.0f), other(3, shape.columns, shape.gap, 2);
  std::mt19937 random(3);
  const auto bias = random_values<float>(random, shape.columns);
  const auto got = run([&](cuda::Stream stream) {
    DeviceArray<T> device_x(x.values), device_other(other.values);
    DeviceArray<T> out(x.values.size(), rounded<T>(Gapped<T>::kGarbage));
    DeviceArray<float> device_bias(bias);
    cuda::ElementwiseParams<T> params;
    params.x = device_x.data();
    params.x_stride = params.other_stride = params.out_stride = x.stride;
    if (use.bias) params.bias = device_bias.data();
    if (use.other) params.other = device_other.data();
    params.multiplies = use.multiplies;
    params.activation = use.activation;
    params.cap = kCap;
    params.out = use.in_place ? device_x.data() : out.data();
    params.rows = x.rows;
    params.columns = x.columns;
    cuda::elementwise(stream, params);
    return use.in_place ? device_x.read() : out.read();
  });
  const auto wanted = x.with([&](std::size_t row, std::size_t column) {
    const double sum = x.at(row, column) + (use.bias ? value_of(bias[column]) : 0.0);
    const double y = activated(use.activation, sum);
    if (!use.other) return y;
    return use.multiplies ? y * other.at(row, column) : y + other.at(row, column);
  });
  check_near(got, wanted, kRounding<T> + 2e-6, 2e-6);
}

}  // namespace

TEMPLATE_TEST_CASE("activations, biases and sums against float64", "", float, cuda::F16,
                   cuda::BF16) {
  const Use uses[] = {{Activation::kSilu, false, true, true, true},    // SwiGLU
                      {Activation::kGelu, true, false, false, false},  // GPT-2
                      {Activation::kRelu, true, false, false, true},   // OPT
                      {Activation::kNone, true, false, false, true},   // a bias
                      {Activation::kNone, false, true, false, false},  // a residual
                      {Activation::kSoftCap, false, false, false, true},
                      {Activation::kGelu, true, true, true, false}};
  for (const RowShape& shape : row_shapes()) {
    for (const Use& use : uses) {
      CAPTURE(shape.columns, shape.gap, static_cast<int>(use.activation));
      check_elementwise<TestType>(shape, use);
    }
  }
}

TEST_CASE("activations at the ends of their range") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f, 1000.0f, -1000.0f, infinity, -infinity, std::nanf("")};
  const auto all = [&](Activation activation) {
    return run([&](cuda::Stream stream) {
      DeviceArray<float> device_x(x), out(x.size(), 1.0f);
      cuda::elementwise<float>(stream, {.x = device_x.data(),
                                        .activation = activation,
                                        .cap = kCap,
                                        .out = out.data(),
                                        .rows = 1,
                                        .columns = static_cast<unsigned>(x.size())});
      return out.read();
    });
  };
  for (const Activation activation : {Activation::kSilu, Activation::kGelu, Activation::kRelu}) {
    CAPTURE(static_cast<int>(activation));
    const auto y = all(activation);
    CHECK(y[0] == 0.0f);
    CHECK(y[1] == 1000.0f);
    CHECK(std::abs(y[2]) < 1e-30f);
    CHECK(y[3] == infinity);
    CHECK(std::isnan(y[5]));
  }
  const auto capped = all(Activation::kSoftCap);
  CHECK(capped[0] == 0.0f);
  CHECK(std::abs(capped[1] - kCap) < 1e-6f);
  CHECK(std::abs(capped[2] + kCap) < 1e-6f);
  CHECK(std::abs(capped[3] - kCap) < 1e-6f);
  CHECK(std::abs(capped[4] + kCap) < 1e-6f);
  CHECK(std::isnan(capped[5]));
}
