// SPDX-License-Identifier: Apache-2.0
#include "cuda/attention_case.h"

using namespace incipit;
using namespace incipit::testing;

TEMPLATE_TEST_CASE("attention against float64", "", cuda::F16, cuda::BF16, std::int8_t) {
  AttentionModel model;
  check_case<TestType, 64>(model, kBatchTokens, kBatch);
  SECTION("a sliding window within one tile, and over several segments") {
    for (const unsigned window : {1u, 5u, 64u, 100u}) {
      model.window = window;
      check_case<TestType, 64>(model, kBatchTokens, kBatch);
    }
  }
  SECTION("a soft cap") {
    model.soft_cap = 2.0f;
    model.scale = 1.0f;
    check_case<TestType, 64>(model, kBatchTokens, kBatch);
  }
  SECTION("slopes") {
    model.alibi = true;
    check_case<TestType, 64>(model, kBatchTokens, kBatch);
    model.soft_cap = 5.0f;
    model.window = 70;
    check_case<TestType, 64>(model, kBatchTokens, kBatch);
  }
}

TEST_CASE("attention maps query heads to KV heads, whatever the group") {
  for (const unsigned group : {1u, 2u, 3u, 5u, 7u, 8u, 32u}) {
    AttentionModel model;
    model.kv_heads = group == 32 ? 1 : 2;
    model.heads = model.kv_heads * group;
    model.segment_tokens = 64;
    check_case<cuda::BF16, 64>(model, 70, {{0, 60, 6}, {0, 69, 1}});
  }
}

TEST_CASE("attention of every head dimension") {
  const AttentionModel model;
  check_case<cuda::BF16, 80>(model, kBatchTokens, kBatch);
  check_case<cuda::F16, 96>(model, kBatchTokens, kBatch);
  check_case<cuda::F16, 112>(model, kBatchTokens, kBatch);
  check_case<cuda::BF16, 128>(model, kBatchTokens, kBatch);
  check_case<cuda::BF16, 256>(model, kBatchTokens, kBatch);
  check_case<std::int8_t, 80>(model, kBatchTokens, kBatch);
  check_case<std::int8_t, 112>(model, kBatchTokens, kBatch);
  check_case<std::int8_t, 128>(model, kBatchTokens, kBatch);
  check_case<std::int8_t, 256>(model, kBatchTokens, kBatch);
  check_case<std::int8_t, 96>(model, kBatchTokens, kBatch);
}

TEST_CASE("scores far from zero keep their order") {
  // With a finite value for masked keys, or without the running maximum, these vanish or overflow.
  AttentionModel model;
  for (const float scale : {3e3f, -3e3f}) {
    AttentionCase<cuda::BF16, 64> problem(model, 1, 100, 0, 0.0f);
    for (float& q : problem.queries[0]) q = scale;
    for (unsigned token = 0; token < 100; ++token) {
      for (unsigned i = 0; i < 64; ++i) {
        problem.set_value(0, token, 0, false, i, rounded<cuda::BF16>(1.0f));
        problem.set_value(0, token, 1, false, i, rounded<cuda::BF16>(token % 2 == 0 ? 1.0f : 0.5f));
      }
    }
    const std::vector<Rows> batch = {{0, 97, 3}};
    const auto plan = problem.plan(batch, {});
    const auto got = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
    check_near(got, problem.wanted(batch), 0.0, kAttentionTolerance<cuda::BF16>);
  }
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("attention before sm_80: F16, without asynchronous copies, in 64 KiB") {
  check_before_sm_80<cuda::F16, 64>();
  check_before_sm_80<cuda::F16, 80>();
  check_before_sm_80<cuda::F16, 256>();
}
#endif
