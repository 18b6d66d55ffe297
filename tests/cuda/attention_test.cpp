// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/attention.cuh"

#include "cuda/attention_case.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

/// Weights are rounded to T, and so are queries, but those alike in the reference.
template <class T>
constexpr double kTolerance = 3.0 * kRounding<T>;

template <class Stored, unsigned kDim, class Product = typename ProductTypeOf<Stored>::Type>
void check_case(const AttentionModel& model, unsigned tokens, const std::vector<Rows>& batch,
                float query_scale = 1.0f) {
  CAPTURE(kDim, sizeof(Stored), model.heads, model.kv_heads, tokens, model.window, model.soft_cap);
  AttentionCase<Stored, kDim, Product> problem(model, 1, tokens, 0, query_scale);
  const auto plan = problem.plan(batch, {});
  const auto got = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
  check_near(got, problem.wanted(batch), 0.0, kTolerance<Product>);
}

// A first token alone, a chunk behind a cached prefix, a few rows in the middle.
const std::vector<Rows> kBatch = {{0, 0, 1}, {0, 130, 13}, {0, 7, 2}};
constexpr unsigned kTokens = 143;

}  // namespace

TEMPLATE_TEST_CASE("attention against float64", "", cuda::F16, cuda::BF16, std::int8_t) {
  AttentionModel model;
  check_case<TestType, 64>(model, kTokens, kBatch);
  SECTION("a sliding window within one tile, and over several segments") {
    for (const unsigned window : {1u, 5u, 64u, 100u}) {
      model.window = window;
      check_case<TestType, 64>(model, kTokens, kBatch);
    }
  }
  SECTION("a soft cap") {
    model.soft_cap = 2.0f;
    model.scale = 1.0f;
    check_case<TestType, 64>(model, kTokens, kBatch);
  }
  SECTION("slopes") {
    model.alibi = true;
    check_case<TestType, 64>(model, kTokens, kBatch);
    model.soft_cap = 5.0f;
    model.window = 70;
    check_case<TestType, 64>(model, kTokens, kBatch);
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
  check_case<cuda::BF16, 80>(model, kTokens, kBatch);
  check_case<cuda::F16, 96>(model, kTokens, kBatch);
  check_case<cuda::F16, 112>(model, kTokens, kBatch);
  check_case<cuda::BF16, 128>(model, kTokens, kBatch);
  check_case<cuda::BF16, 256>(model, kTokens, kBatch);
  check_case<std::int8_t, 80>(model, kTokens, kBatch);
  check_case<std::int8_t, 112>(model, kTokens, kBatch);
  check_case<std::int8_t, 128>(model, kTokens, kBatch);
  check_case<std::int8_t, 256>(model, kTokens, kBatch);
  check_case<std::int8_t, 96, cuda::F16>(model, kTokens, kBatch);
}

TEST_CASE("int8 with F16 products: values of any size") {
  AttentionModel model;
  model.window = 100;
  check_case<std::int8_t, 64, cuda::F16>(model, kTokens, kBatch);
  for (const float scale : {2e-7f, 1e-4f, 40.0f}) {
    AttentionCase<std::int8_t, 64, cuda::F16> problem(model, 1, kTokens, 0);
    for (unsigned token = 0; token < kTokens; ++token) {
      for (const unsigned head : {0u, 1u}) {
        problem.set_scale(0, token, head, true, token % 2 == 0 ? scale : -0.7f * scale);
      }
    }
    const auto plan = problem.plan(kBatch, {});
    const auto got = run([&](cuda::Stream s) { return problem.run_on(s, kBatch, plan); });
    check_near(got, problem.wanted(kBatch), 0.0, 127 * value_of(scale) * kTolerance<cuda::F16>);
  }
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
    check_near(got, problem.wanted(batch), 0.0, kTolerance<cuda::BF16>);
  }
}

#if INCIPIT_CUDA_EMULATED
template <class Stored, unsigned kDim>
void check_before_sm_80() {
  CAPTURE(kDim, sizeof(Stored));
  AttentionCase<Stored, kDim, cuda::F16> problem({}, 1, kTokens, 0);
  const auto plan = problem.plan(kBatch, {});
  simt::Machine machine;
  machine.options.architecture = 75;
  check_near(problem.run_on(&machine, kBatch, plan), problem.wanted(kBatch), 0.0,
             kTolerance<cuda::F16>);
}

TEST_CASE("attention before sm_80: F16, without asynchronous copies, in 64 KiB") {
  check_before_sm_80<cuda::F16, 64>();
  check_before_sm_80<cuda::F16, 80>();
  check_before_sm_80<cuda::F16, 256>();
  check_before_sm_80<std::int8_t, 80>();
  check_before_sm_80<std::int8_t, 256>();
}
#endif
