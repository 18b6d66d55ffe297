// SPDX-License-Identifier: Apache-2.0
// Products of BF16 weights by BF16 dot products, where the CPU has them.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "cpu/kernel_fixture.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::testing;
using tensor::DType;

namespace {

std::optional<cpu::Kernels> bf16_kernels() {
  if (!base::cpu_features().avx512_bf16) {
    WARN("skipped: this CPU has no BF16 dot products");
    return std::nullopt;
  }
  cpu::Kernels kernels = cpu::avx512::kernels();
  cpu::avx512::use_bf16_dots(kernels);
  return kernels;
}

std::vector<std::uint16_t> round_all(const cpu::Kernels& kernels, tensor::ConstMatrix x) {
  std::vector<std::uint16_t> out(x.rows * cpu::rounded_columns(x.columns), 0xffff);
  kernels.round_rows(x, 0, x.rows, out.data());
  return out;
}

std::vector<float> multiply(const cpu::Kernels& kernels, const cpu::PackedWeight& weight,
                            const std::vector<float>& x, const std::vector<float>& bias = {}) {
  const tensor::ConstMatrix rows = view(x, weight.columns());
  const auto rounded = round_all(kernels, rows);
  std::vector<float> out(rows.rows * weight.rows(), 12345.0f);
  kernels.product({.weight = &weight,
                   .bias = bias.empty() ? nullptr : bias.data(),
                   .x = rows,
                   .rounded = rounded.data(),
                   .out = view(out, weight.rows()),
                   .panel_begin = 0,
                   .panel_end = weight.panels()});
  return out;
}

}  // namespace

TEST_CASE("rows are rounded to nearest even, in whole pairs") {
  const auto kernels = bf16_kernels();
  if (!kernels) return;
  std::mt19937 random(1);
  for (const std::size_t columns : {1u, 2u, 15u, 16u, 17u, 33u, 64u}) {
    auto x = random_floats(random, 3 * columns);
    x[0] = 1.00390625f;        // a tie: down to even
    x[columns] = 1.01171875f;  // up to even
    x[2 * columns] = 1e-40f;   // subnormal
    const auto got = round_all(*kernels, view(x, columns));
    const std::size_t stride = cpu::rounded_columns(columns);
    for (std::size_t row = 0; row < 3; ++row) {
      for (std::size_t k = 0; k < stride; ++k) {
        const float value = k < columns ? x[row * columns + k] : 0.0f;
        CAPTURE(columns, row, k);
        CHECK(got[row * stride + k] == (std::abs(value) < 1e-38f ? 0 : tensor::f32_to_bf16(value)));
      }
    }
  }
}

TEST_CASE("BF16 products agree with double precision on the rounded inputs") {
  const auto kernels = bf16_kernels();
  if (!kernels) return;
  std::mt19937 random(2);
  for (const std::size_t columns : {1u, 2u, 3u, 33u, 576u}) {
    for (const std::size_t outputs : {1u, 15u, 16u, 17u, 64u, 65u, 130u}) {
      const auto bytes = random_weight(random, DType::kBF16, outputs, columns);
      const TestWeight weight(*kernels, DType::kBF16, outputs, columns, bytes);
      const std::size_t rows = 8;
      const auto x = random_floats(random, rows * columns);
      const auto bias = random_floats(random, outputs);
      const auto got = multiply(*kernels, *weight, x, bias);
      std::vector<float> w(columns);
      for (std::size_t n = 0; n < outputs; ++n) {
        tensor::dequantize_row(DType::kBF16, bytes.data() + n * columns * 2, w);
        for (std::size_t row = 0; row < rows; ++row) {
          double sum = static_cast<double>(bias[n]), size = std::abs(sum);
          for (std::size_t k = 0; k < columns; ++k) {
            const float input = tensor::bf16_to_f32(tensor::f32_to_bf16(x[row * columns + k]));
            const double term = static_cast<double>(w[k]) * static_cast<double>(input);
            sum += term;
            size += std::abs(term);
          }
          CAPTURE(columns, outputs, n, row);
          CHECK(std::abs(static_cast<double>(got[row * outputs + n]) - sum) <= 1e-6 * size);
        }
      }
    }
  }
}

TEST_CASE("a row of a BF16 product has the same bits among any number of rows") {
  const auto kernels = bf16_kernels();
  if (!kernels) return;
  std::mt19937 random(3);
  const std::size_t columns = 95, outputs = 150, most = 40;
  const auto bytes = random_weight(random, DType::kBF16, outputs, columns);
  const TestWeight weight(*kernels, DType::kBF16, outputs, columns, bytes);
  const auto x = random_floats(random, most * columns);
  const auto all = multiply(*kernels, *weight, x);
  for (std::size_t rows = 1; rows < most; ++rows) {
    const std::vector<float> some(x.end() - static_cast<std::ptrdiff_t>(rows * columns), x.end());
    CAPTURE(rows);
    CHECK(same_bits(multiply(*kernels, *weight, some), std::span(all).last(rows * outputs)));
  }
}

TEST_CASE("a damaged activation shows in its own row only, other weights keep their products") {
  const auto kernels = bf16_kernels();
  if (!kernels) return;
  std::mt19937 random(4);
  const std::size_t columns = 64, outputs = 20;
  const auto bytes = random_weight(random, DType::kBF16, outputs, columns);
  const TestWeight weight(*kernels, DType::kBF16, outputs, columns, bytes);
  auto x = random_floats(random, 3 * columns);
  const auto expected = multiply(*kernels, *weight, x);
  x[columns + 7] = std::numeric_limits<float>::quiet_NaN();
  const auto out = multiply(*kernels, *weight, x);
  CHECK(same_bits(std::span(out).first(outputs), std::span(expected).first(outputs)));
  CHECK(same_bits(std::span(out).last(outputs), std::span(expected).last(outputs)));
  for (std::size_t n = 0; n < outputs; ++n) CHECK(std::isnan(out[outputs + n]));

  const auto floats = random_weight(random, DType::kF32, outputs, columns);
  const TestWeight plain(*kernels, DType::kF32, outputs, columns, floats);
  std::vector<float> y(3 * outputs), z(3 * outputs);
  const auto run = [&](const cpu::Kernels& some, std::vector<float>& to) {
    some.product({.weight = &*plain,
                  .x = view(x, columns),
                  .out = view(to, outputs),
                  .panel_begin = 0,
                  .panel_end = (*plain).panels()});
  };
  run(*kernels, y);
  run(cpu::avx512::kernels(), z);
  CHECK(std::memcmp(y.data(), z.data(), y.size() * sizeof(float)) == 0);
}
