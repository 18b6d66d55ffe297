// SPDX-License-Identifier: Apache-2.0
#include "cuda/kernels/attention_wgmma.cuh"

#include "cuda/attention_case.h"
#include "cuda/sparse_memory.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

constexpr cuda::Math kFast = {true, 90};

/// Readies the stream for code of sm_90a; false where there is no such GPU.
bool has_sm_90([[maybe_unused]] cuda::Stream stream) {
#if INCIPIT_CUDA_EMULATED
  stream->options.architecture = 90;
  return true;
#else
  cudaDeviceProp properties;
  cuda::check_launch(cudaGetDeviceProperties(&properties, 0));
  return properties.major == 9 && properties.minor == 0;
#endif
}

template <class T, unsigned kDim>
void check_plan(AttentionCase<T, kDim>& problem, const std::vector<Rows>& batch,
                const device::PlanOptions& options = {}) {
  CAPTURE(kDim, problem.model.heads, problem.model.kv_heads, problem.tokens, problem.model.window,
          problem.model.soft_cap);
  problem.math = kFast;
  const auto plan = problem.plan(batch, options);
  bool known = true;
  const auto got = run([&](cuda::Stream s) {
    known = has_sm_90(s);
    return known ? problem.run_on(s, batch, plan, true) : std::vector<float>();
  });
  if (known) check_near(got, problem.wanted(batch), 0.0, kAttentionTolerance<T>);
}

template <class T, unsigned kDim>
void check_fast(const AttentionModel& model, unsigned tokens, const std::vector<Rows>& batch) {
  AttentionCase<T, kDim> problem(model, 1, tokens, 0);
  check_plan(problem, batch);
}

}  // namespace

TEMPLATE_TEST_CASE("attention by warpgroups against float64", "", cuda::F16, cuda::BF16) {
  AttentionModel itself, sliding, sloped, all;
  itself.window = 1;
  sliding.window = 100;
  sloped.alibi = all.alibi = true;
  all.soft_cap = 5.0f;
  all.window = 70;
  check_fast<TestType, 64>({}, kBatchTokens, kBatch);
  check_fast<TestType, 128>({}, kBatchTokens, kBatch);
  for (const AttentionModel& model : {itself, sliding, sloped, all}) {
    check_fast<TestType, 64>(model, kBatchTokens, kBatch);
  }
  check_fast<TestType, 128>(all, kBatchTokens, kBatch);
}

TEST_CASE("attention by warpgroups maps query heads to KV heads, whatever the group") {
  AttentionModel mha, three, seven, mqa;
  mha.heads = 2;
  three.heads = 6;
  seven.heads = 14;
  mqa.heads = 32;
  mqa.kv_heads = 1;
  for (const AttentionModel& model : {mha, three, seven, mqa}) {
    check_fast<cuda::BF16, 64>(model, 70, {{0, 60, 6}, {0, 69, 1}});
  }
}

TEST_CASE("attention by warpgroups: both of them, many tiles, several blocks") {
  AttentionModel model;
  model.heads = 3;
  model.kv_heads = 1;
  // The stages go round three times; rows of tiles: 128 and 58, 33.
  check_fast<cuda::F16, 128>(model, 662, {{0, 600, 62}});
  check_fast<cuda::F16, 128>(model, 650, {{0, 639, 11}});
  check_fast<cuda::BF16, 64>(model, 512, {{0, 448, 64}});  // whole blocks only
}

TEST_CASE("attention by warpgroups in parts, which are merged") {
  AttentionModel model;
  for (const unsigned window : {0u, 150u}) {
    model.window = window;
    AttentionCase<cuda::BF16, 64> problem(model, 3, 420, 256);
    device::PlanOptions split;
    split.wanted_items = 8;
    check_plan(problem, {{0, 380, 40}}, split);
    // Samples of one prompt share its segments and have their own behind it.
    check_plan(problem, {{0, 410, 10}, {1, 400, 12}, {2, 419, 1}});
  }
}

TEST_CASE("attention by warpgroups: rows that see no key are zero") {
  AttentionCase<cuda::F16, 64> problem({}, 1, 300, 0);
  problem.math = kFast;
  DeviceArray<unsigned char> pool(problem.pool);
  device::AttentionPlan plan;
  plan.segment_tokens = 128;
  plan.rows = {0, 1};
  plan.split_index.assign(2, device::AttentionPlan::kWhole);
  const std::size_t width = problem.model.heads * 64;
  std::vector<float> q(problem.queries[0].begin() + 260 * static_cast<std::ptrdiff_t>(width),
                       problem.queries[0].begin() + 262 * static_cast<std::ptrdiff_t>(width));
  const auto zeros_from = [&](std::size_t first) {
    bool known = true;
    const auto got = run([&](cuda::Stream s) {
      known = has_sm_90(s);
      return known ? problem.run_on_pool(s, pool.data(), q, plan, true) : q;
    });
    return !known || std::all_of(got.begin() + static_cast<std::ptrdiff_t>(first), got.end(),
                                 [](float x) { return x == 0.0f; });
  };
  SECTION("an item without blocks") {
    plan.positions = {260, 261};
    plan.items = {{0, 2, 0, 0, 0, 3}};
    CHECK(zeros_from(0));
  }
  SECTION("among rows that see keys") {
    plan.positions = {260, 100};  // the second sees nothing of the only item's segments
    plan.blocks.assign(problem.blocks[0].begin() + 8, problem.blocks[0].end());
    plan.items = {{0, 2, 0, 11, 1, 3}};
    CHECK(zeros_from(width));
    CHECK_FALSE(zeros_from(0));
  }
}

TEST_CASE("attention by warpgroups: a damaged token shows, but not where it is not seen") {
  AttentionModel model;
  AttentionCase<cuda::BF16, 64> problem(model, 1, 100, 0);
  problem.math = kFast;
  auto damaged = problem;
  // What append_kv makes of a V that is not finite.
  damaged.set_value(0, 80, 1, false, 37, rounded<cuda::BF16>(std::nanf("")));
  const std::vector<Rows> batch = {{0, 60, 40}};
  const auto plan = problem.plan(batch, {});
  bool known = true;
  const auto result = [&](AttentionCase<cuda::BF16, 64>& which) {
    return run([&](cuda::Stream s) {
      known = has_sm_90(s);
      return known ? which.run_on(s, batch, plan, true) : std::vector<float>();
    });
  };
  const auto before = result(problem), after = result(damaged);
  if (!known) return;
  const std::size_t width = model.heads * 64;
  unsigned wrong = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool sees = 60 + i / width >= 80 && i % width / 64 >= 2;  // heads of KV head 1
    wrong += sees ? !std::isnan(after[i]) : after[i] != before[i];
  }
  CHECK(wrong == 0);
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("attention by warpgroups: block numbers beyond 2^31 elements and 65,535") {
  const std::vector<Rows> batch = {{0, 140, 10}};
  AttentionCase<cuda::BF16, 64> problem({}, 1, 150, 0);
  problem.math = kFast;
  const auto run_there = [&](const unsigned char* pool, const std::vector<float>& q) {
    simt::Machine machine;
    has_sm_90(&machine);
    return problem.run_on_pool(&machine, pool, q, problem.plan(batch, {}), true);
  };
  const std::size_t width = problem.model.heads * 64;
  const std::vector<float> q(problem.queries[0].begin() + 140 * static_cast<std::ptrdiff_t>(width),
                             problem.queries[0].begin() + 150 * static_cast<std::ptrdiff_t>(width));
  const auto wanted = run_there(problem.pool.data(), q);
  const std::size_t bytes = problem.layout().block_bytes();
  const std::size_t far = (std::size_t{1} << 34) / bytes;  // 2^33 elements from the start
  const SparseMemory memory((far * 3 + 64) * bytes);
  REQUIRE(memory.is_there());
  auto* const pool = memory.as<unsigned char>();
  for (std::size_t b = 0; b < problem.blocks[0].size(); ++b) {
    device::BlockId& id = problem.blocks[0][b];
    const std::size_t moved = far * (b % 4) + b;
    std::copy_n(&problem.pool[id * bytes], bytes, pool + moved * bytes);
    id = static_cast<device::BlockId>(moved);
  }
  CHECK(same_bits(run_there(pool, q), wanted));
}

namespace {

template <class T, unsigned kDim>
simt::Counters count_fast(AttentionCase<T, kDim>& problem, const std::vector<Rows>& batch,
                          cuda::Math math = kFast) {
  problem.math = math;
  const auto plan = problem.plan(batch, {});
  return count([&](cuda::Stream s) {
    has_sm_90(s);
    problem.run_on(s, batch, plan);
  });
}

}  // namespace

TEST_CASE("what attention by warpgroups costs") {
  AttentionModel model;
  model.heads = 8;
  model.kv_heads = 2;
  AttentionCase<cuda::BF16, 128> problem(model, 1, 512, 0);
  const auto counters = count_fast(problem, {{0, 480, 32}});  // 128 rows, 4 tiles
  // Two groups of two KV heads: 128 / 16 products of scores per tile, as many of values.
  CHECK(counters.group_products == 2u * 2u * 4u * (8 + 8));
  CHECK(counters.tensor_copy_bytes == model.kv_heads * 512 * problem.token_bytes());
  CHECK(counters.products == 0);
  CHECK(counters.bank_conflicts == 0);
}

TEST_CASE("attention by warpgroups only in fast mode on 9.0, for many rows of 16-bit KV") {
  const std::vector<Rows> many = {{0, 60, 20}}, few = {{0, 79, 1}};
  const auto used = [&](auto& problem, const std::vector<Rows>& batch, cuda::Math math) {
    return count_fast(problem, batch, math).group_products > 0;
  };
  AttentionCase<cuda::F16, 64> problem({}, 1, 80, 0);
  CHECK(used(problem, many, {true, 90}));
  CHECK_FALSE(used(problem, few, {true, 90}));
  CHECK_FALSE(used(problem, many, {false, 90}));
  CHECK_FALSE(used(problem, many, {true, 89}));
  CHECK_FALSE(used(problem, many, {true, 100}));
  AttentionCase<std::int8_t, 64> bytes({}, 1, 80, 0);
  CHECK_FALSE(used(bytes, many, {true, 90}));
  AttentionCase<cuda::F16, 80> other({}, 1, 80, 0);
  CHECK_FALSE(used(other, many, {true, 90}));
}
#endif
