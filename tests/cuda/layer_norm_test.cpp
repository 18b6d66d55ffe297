// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/layer_norm.cuh"

#include "cuda/norm_fixture.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

std::vector<double> normalised(const std::vector<double>& h, const std::vector<float>& weight,
                               const std::vector<float>& bias) {
  const auto count = static_cast<double>(h.size());
  double sum = 0.0, squares = 0.0;
  for (const double value : h) sum += value;
  for (const double value : h) squares += (value - sum / count) * (value - sum / count);
  const double scale = 1.0 / std::sqrt(squares / count + 1e-5);
  std::vector<double> out(h.size());
  for (std::size_t i = 0; i < h.size(); ++i) {
    out[i] = (h[i] - sum / count) * scale * value_of(weight[i]) + value_of(bias[i]);
  }
  return out;
}

}  // namespace

TEMPLATE_TEST_CASE("layer_norm against float64", "", float, cuda::F16, cuda::BF16) {
  for (const RowShape& shape : row_shapes()) {
    CAPTURE(shape.columns, shape.gap);
    const NormProblem<TestType> problem(3, shape.columns, shape.gap);
    for (const bool with_residual : {false, true}) {
      const auto got =
          problem.run_with(&cuda::layer_norm<TestType>, {.residual = with_residual, .bias = true});
      const auto wanted = problem.wanted(with_residual, [&](const std::vector<double>& h) {
        return normalised(h, problem.weight, problem.bias);
      });
      check_near(got, wanted, kRounding<TestType> + 1e-6, 2e-6);
    }
  }
}

TEST_CASE("layer_norm keeps its accuracy where the mean is large") {
  NormProblem<float> problem(2, 576, 0);
  for (float& value : problem.x.values) value = 1000.0f + value;
  const auto got = problem.run_with(&cuda::layer_norm<float>, {.bias = true});
  const auto wanted = problem.wanted(false, [&](const std::vector<double>& h) {
    return normalised(h, problem.weight, problem.bias);
  });
  check_near(got, wanted, 1e-5, 5e-4);  // a mean of 1000 is known to 6e-5, of values near 1
}

TEST_CASE("layer_norm may go without a bias, and write where it reads") {
  const NormProblem<cuda::BF16> problem(2, 100, 0);
  const auto got = problem.run_with(&cuda::layer_norm<cuda::BF16>, {.in_place = true});
  const auto wanted = problem.wanted(false, [&](const std::vector<double>& h) {
    return normalised(h, problem.weight, std::vector<float>(h.size()));
  });
  check_near(got, wanted, kRounding<cuda::BF16> + 1e-6, 2e-6);
}

TEST_CASE("a row's layer_norm does not depend on its neighbours or on its alignment") {
  check_rows_alone(&cuda::layer_norm<cuda::BF16>);
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("layer_norm of aligned rows moves whole sectors, each value at most twice") {
  const NormProblem<float> problem(4, 2048, 0);
  const auto counters = count([&](cuda::Stream stream) {
    problem.run_on(stream, &cuda::layer_norm<float>, {.bias = true});
  });
  constexpr std::uint64_t kMatrix = 4 * 2048 * 4, kWeights = 2 * 4 * 2048 * 4;
  CHECK(counters.global_store_bytes == kMatrix);
  CHECK(counters.global_store_sectors * 32 == kMatrix);
  CHECK(counters.global_load_bytes == 3 * kMatrix + kWeights);
  CHECK(counters.global_load_sectors * 32 == counters.global_load_bytes);
}
#endif
