// SPDX-License-Identifier: Apache-2.0
// Attention over int8 with F16 products, which the library launches nowhere yet: its kernels are
// compiled here.
#include "cuda/attention_case.h"
#include "cuda/kernels/attention_merge.cuh"

using namespace incipit;
using namespace incipit::testing;

namespace incipit::testing {

template <unsigned kDim>
struct Launch<std::int8_t, kDim, cuda::F16> {
  static void attention(cuda::Stream stream, cuda::Math, device::KvFormat,
                        const cuda::PagedAttentionParams& params, const cuda::TileLists& tiles) {
    cuda::attention_tiles<cuda::F16, std::int8_t, kDim>(
        stream, params, tiles.narrow, tiles.narrow_count, tiles.wide, tiles.wide_count);
    cuda::attention_merge(stream, params);
  }
};

}  // namespace incipit::testing

TEST_CASE("int8 with F16 products: values of any size") {
  AttentionModel model;
  model.window = 100;
  check_case<std::int8_t, 64, cuda::F16>(model, kBatchTokens, kBatch);
  for (const float scale : {2e-7f, 1e-4f, 40.0f}) {
    AttentionCase<std::int8_t, 64, cuda::F16> problem(model, 1, kBatchTokens, 0);
    for (unsigned token = 0; token < kBatchTokens; ++token) {
      for (const unsigned head : {0u, 1u}) {
        problem.set_scale(0, token, head, true, token % 2 == 0 ? scale : -0.7f * scale);
      }
    }
    const auto plan = problem.plan(kBatch, {});
    const auto got = run([&](cuda::Stream s) { return problem.run_on(s, kBatch, plan); });
    check_near(got, problem.wanted(kBatch), 0.0,
               127 * value_of(scale) * kAttentionTolerance<cuda::F16>);
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("int8 before sm_80: without asynchronous copies, in 64 KiB") {
  check_before_sm_80<std::int8_t, 80>();
  check_before_sm_80<std::int8_t, 256>();
}
#endif
