// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/rms_norm.cuh"

#include "cuda/kernel_test.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

constexpr float kGap = -98765.0f;

/// A problem: rows that lie `gap` elements apart, and with them garbage in between.
template <class T>
struct Problem {
  Problem(std::size_t rows_in, std::size_t columns_in, std::size_t gap)
      : rows(rows_in), columns(columns_in), stride(columns + gap) {
    std::mt19937 random(static_cast<unsigned>(columns * 31 + rows));
    const auto fill = [&](float scale) {
      auto values = random_values<T>(random, (rows - 1) * stride + columns, scale);
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i % stride >= columns) values[i] = rounded<T>(kGap);
      }
      return values;
    };
    x = fill(3.0f);
    residual = fill(2.0f);
    weight = random_values<float>(random, columns);
  }

  /// The norm, and behind it the residual as it is left.
  std::vector<T> run_on(cuda::Stream stream, bool with_residual, bool in_place) const {
    DeviceArray<T> device_x(x), device_residual(residual);
    DeviceArray<T> out(x.size(), rounded<T>(kGap));
    DeviceArray<float> device_weight(weight);
    cuda::RmsNormParams<T> params;
    params.x = device_x.data();
    params.x_stride = params.residual_stride = params.out_stride =
        static_cast<std::int64_t>(stride);
    if (with_residual) params.residual = device_residual.data();
    params.weight = device_weight.data();
    params.out = in_place ? device_x.data() : out.data();
    params.rows = static_cast<unsigned>(rows);
    params.columns = static_cast<unsigned>(columns);
    params.epsilon = kEpsilon;
    cuda::rms_norm(stream, params);
    return joined(in_place ? device_x.read() : out.read(), device_residual.read());
  }

  /// What run_on must give, the gaps included.
  std::vector<double> wanted(bool with_residual) const {
    std::vector<double> all(2 * x.size(), value_of(rounded<T>(kGap)));
    for (std::size_t r = 0; r < rows; ++r) {
      double squares = 0.0;
      for (std::size_t at = r * stride; at < r * stride + columns; ++at) {
        const auto sum = static_cast<float>(value_of(x[at]) + value_of(residual[at]));
        all[at] = with_residual ? value_of(rounded<T>(sum)) : value_of(x[at]);
        all[x.size() + at] = with_residual ? all[at] : value_of(residual[at]);
        squares += all[at] * all[at];
      }
      const double mean = squares / static_cast<double>(columns);
      const double scale = 1.0 / std::sqrt(mean + value_of(kEpsilon));
      for (std::size_t i = 0; i < columns; ++i) all[r * stride + i] *= scale * value_of(weight[i]);
    }
    return all;
  }

  static constexpr float kEpsilon = 1e-5f;
  std::size_t rows, columns, stride;
  std::vector<T> x, residual;
  std::vector<float> weight;
};

}  // namespace

TEMPLATE_TEST_CASE("rms_norm against float64", "", float, cuda::F16, cuda::BF16) {
  for (const std::size_t columns : {1u, 7u, 8u, 64u, 65u, 256u, 257u, 576u, 2304u}) {
    for (const std::size_t gap : {0u, 3u, 8u}) {
      CAPTURE(columns, gap);
      const Problem<TestType> problem(3, columns, gap);
      for (const bool with_residual : {false, true}) {
        const auto got =
            run([&](cuda::Stream s) { return problem.run_on(s, with_residual, false); });
        check_near(got, problem.wanted(with_residual), kRounding<TestType> + 1e-6, 1e-7);
      }
    }
  }
}

TEMPLATE_TEST_CASE("rms_norm may write where it reads", "", float, cuda::BF16) {
  const Problem<TestType> problem(2, 640, 0);
  const auto body = [&](bool in_place) {
    return run([&](cuda::Stream stream) { return problem.run_on(stream, true, in_place); });
  };
  CHECK(same_bits(body(true), body(false)));
}

TEST_CASE("a row's norm does not depend on its neighbours or on its alignment") {
  const Problem<cuda::BF16> all(5, 520, 0), apart(5, 520, 3);
  const auto together = run([&](cuda::Stream stream) { return all.run_on(stream, true, false); });
  for (std::size_t r = 0; r < all.rows; ++r) {
    Problem<cuda::BF16> one(1, 520, 0);
    const auto row = static_cast<std::ptrdiff_t>(r * all.stride);
    one.x.assign(all.x.begin() + row, all.x.begin() + row + 520);
    one.residual.assign(all.residual.begin() + row, all.residual.begin() + row + 520);
    one.weight = all.weight;
    const auto alone = run([&](cuda::Stream stream) { return one.run_on(stream, true, false); });
    for (std::size_t i = 0; i < 520; ++i) CHECK(alone[i].bits == together[r * all.stride + i].bits);
  }
  Problem<cuda::BF16> moved = apart;
  moved.weight = all.weight;
  for (std::size_t r = 0; r < all.rows; ++r) {
    for (std::size_t i = 0; i < 520; ++i) {
      moved.x[r * moved.stride + i] = all.x[r * all.stride + i];
      moved.residual[r * moved.stride + i] = all.residual[r * all.stride + i];
    }
  }
  const auto elsewhere = run([&](cuda::Stream s) { return moved.run_on(s, true, false); });
  for (std::size_t r = 0; r < all.rows; ++r) {
    for (std::size_t i = 0; i < 520; ++i) {
      CHECK(elsewhere[r * moved.stride + i].bits == together[r * all.stride + i].bits);
    }
  }
}

TEST_CASE("rms_norm without rows does nothing, of zeros is zero") {
  Problem<float> problem(1, 32, 0);
  problem.rows = 0;
  const auto untouched = run([&](cuda::Stream s) { return problem.run_on(s, false, false); });
  for (std::size_t i = 0; i < 32; ++i) CHECK(untouched[i] == kGap);
  problem.rows = 1;
  problem.x.assign(32, 0.0f);
  const auto zeros = run([&](cuda::Stream s) { return problem.run_on(s, false, false); });
  for (std::size_t i = 0; i < 32; ++i) CHECK(zeros[i] == 0.0f);
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("rms_norm of aligned rows moves whole sectors") {
  const Problem<cuda::BF16> problem(4, 2048, 0);
  const auto counters = count([&](cuda::Stream s) { problem.run_on(s, true, false); });
  CHECK(counters.global_store_bytes == 2 * 4 * 2048 * 2);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
}
#endif
