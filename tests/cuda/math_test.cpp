// SPDX-License-Identifier: Apache-2.0
#include "cuda/prim/math.cuh"

#include <limits>

#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

/// of(x) on the device for each x, with `function` 0: e^x, 1: tanh, 2: 2^x, 3: to BF16 and back,
/// 4: to F16 and back, 5: rounded to a whole number.
template <int kFunction>
INCIPIT_KERNEL(32)
apply(const float* x, float* y, unsigned count) {
  using namespace cuda::prim;
  for (unsigned i = thread_x(); i < count; i += 32) {
    if constexpr (kFunction == 0) y[i] = exp_f32(x[i]);
    if constexpr (kFunction == 1) y[i] = tanh_f32(x[i]);
    if constexpr (kFunction == 2) y[i] = exp2_approx(x[i]);
    if constexpr (kFunction == 3) y[i] = to_float(from_float<cuda::BF16>(x[i]));
    if constexpr (kFunction == 4) y[i] = to_float(from_float<cuda::F16>(x[i]));
    if constexpr (kFunction == 5) y[i] = round_to_even(x[i]);
  }
}

template <int kFunction>
std::vector<float> of(const std::vector<float>& x) {
  return run([&](cuda::Stream stream) {
    DeviceArray<float> device_x(x), y(x.size(), -1.0f);
    cuda::launch(stream, {.threads = 32}, &apply<kFunction>, device_x.data(), y.data(),
                 static_cast<unsigned>(x.size()));
    return y.read();
  });
}

std::vector<double> wanted(const std::vector<float>& x, double (*function)(double)) {
  std::vector<double> all;
  for (const float value : x) all.push_back(function(value_of(value)));
  return all;
}

std::vector<float> from_to(float first, float last, std::size_t count) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) {
    all[i] = first + (last - first) * static_cast<float>(i) / static_cast<float>(count - 1);
  }
  return all;
}

}  // namespace

TEST_CASE("exp, tanh and exp2 are near, everywhere") {
  const auto powers = from_to(-86.9f, 87.9f, 5000);
  check_near(of<0>(powers), wanted(powers, [](double x) { return std::exp(x); }), 2e-7, 0.0);
  const auto turns = from_to(-12.0f, 12.0f, 5000);
  check_near(of<1>(turns), wanted(turns, [](double x) { return std::tanh(x); }), 0.0, 3e-7);
  const auto binary = from_to(-125.0f, 10.0f, 5000);
  check_near(of<2>(binary), wanted(binary, [](double x) { return std::exp2(x); }), 4e-7, 0.0);
}

TEST_CASE("exp at the ends of its range") {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto y = of<0>({0.0f, -87.5f, -infinity, std::nanf(""), 89.0f, infinity});
  CHECK(y[0] == 1.0f);
  CHECK(y[1] == 0.0f);
  CHECK(y[2] == 0.0f);
  CHECK(std::isnan(y[3]));
  CHECK(y[4] == y[5]);
  CHECK(std::isfinite(y[5]));
  CHECK(of<1>({-infinity, infinity}) == std::vector<float>{-1.0f, 1.0f});
  CHECK(of<2>({-infinity, -127.0f, 0.0f, 3.0f}) == std::vector<float>{0.0f, 0.0f, 1.0f, 8.0f});
}

TEST_CASE("16-bit floats round as the library rounds them, to nearest even") {
  std::vector<float> x = {0.0f,      -0.0f,     1.0f,    1.00390625f, 1.01171875f, 65504.0f,
                          65520.0f,  1e30f,     -1e30f,  0x1p-24f,    0x1p-25f,    0x1.8p-25f,
                          0x1p-133f, 0x1p-134f, 3.4e38f, 2049.0f,     2051.0f};
  std::mt19937 random(1);
  for (const float value : random_values<float>(random, 3000, 70000.0f)) x.push_back(value);
  std::vector<float> bf16, f16;
  for (const float value : x) {
    bf16.push_back(tensor::bf16_to_f32(tensor::f32_to_bf16(value)));
    f16.push_back(tensor::f16_to_f32(tensor::f32_to_f16(value)));
  }
  CHECK(same_bits(of<3>(x), bf16));
  CHECK(same_bits(of<4>(x), f16));
  CHECK(std::isnan(of<3>({std::nanf("")})[0]));
  CHECK(of<5>({0.5f, 1.5f, -2.5f, 3.49f}) == std::vector<float>{0.0f, 2.0f, -2.0f, 3.0f});
}
