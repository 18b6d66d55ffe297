// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/rms_norm.cuh"

#include "cuda/norm_fixture.h"

using namespace incipit;
using namespace incipit::testing;

TEMPLATE_TEST_CASE("rms_norm against float64", "", float, cuda::F16, cuda::BF16) {
  for (const RowShape& shape : row_shapes()) {
    CAPTURE(shape.columns, shape.gap);
    const NormProblem<TestType> problem(3, shape.columns, shape.gap);
    for (const bool with_residual : {false, true}) {
      const auto got = problem.run_with(&cuda::rms_norm<TestType>, {.residual = with_residual});
      const auto wanted = problem.wanted(with_residual, [&](const std::vector<double>& h) {
        double squares = 0.0;
        for (const double value : h) squares += value * value;
        const double scale = 1.0 / std::sqrt(squares / static_cast<double>(h.size()) + 1e-5);
        std::vector<double> out(h.size());
        for (std::size_t i = 0; i < h.size(); ++i) {
          out[i] = h[i] * scale * value_of(problem.weight[i]);
        }
        return out;
      });
      check_near(got, wanted, kRounding<TestType> + 1e-6, 1e-7);
    }
  }
}

TEMPLATE_TEST_CASE("rms_norm may write where it reads", "", float, cuda::BF16) {
  const NormProblem<TestType> problem(2, 640, 0);
  CHECK(same_bits(problem.run_with(&cuda::rms_norm<TestType>, {.residual = true, .in_place = true}),
                  problem.run_with(&cuda::rms_norm<TestType>, {.residual = true})));
}

TEST_CASE("a row's norm does not depend on its neighbours or on its alignment") {
  check_rows_alone(&cuda::rms_norm<cuda::BF16>);
}

TEST_CASE("rms_norm without rows does nothing, of zeros is zero") {
  NormProblem<float> problem(1, 32, 0);
  problem.x.values.assign(32, 0.0f);
  const auto zeros = problem.run_with(&cuda::rms_norm<float>, {});
  for (std::size_t i = 0; i < 32; ++i) CHECK(zeros[i] == 0.0f);
  problem.x.rows = 0;
  const auto untouched = problem.run_with(&cuda::rms_norm<float>, {});
  for (std::size_t i = 0; i < 32; ++i) CHECK(untouched[i] == Gapped<float>::kGarbage);
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("rms_norm of aligned rows moves whole sectors, each value at most twice") {
  const NormProblem<cuda::BF16> problem(4, 2048, 0);
  const auto counters = count([&](cuda::Stream stream) {
    problem.run_on(stream, &cuda::rms_norm<cuda::BF16>, {.residual = true});
  });
  constexpr std::uint64_t kMatrix = 4 * 2048 * 2, kWeights = 4 * 2048 * 4;
  CHECK(counters.global_store_bytes == 2 * kMatrix);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
  CHECK(counters.global_load_bytes == 3 * kMatrix + kWeights);
}
#endif
