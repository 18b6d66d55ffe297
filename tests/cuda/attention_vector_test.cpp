// SPDX-License-Identifier: Apache-2.0
// Attention of few rows in fast mode.
#include "cuda/attention_case.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

// Everything is f32: what is left are sums of a few hundred terms and 2^x.
constexpr double kTolerance = 2e-5;

// Items of 2 rows and of 4, where a KV head serves 2 heads: the kernel for 4 rows.
const std::vector<Rows> kFew = {{0, 0, 1}, {0, 130, 2}, {0, 7, 2}};
// One of 8, one of 6 of them: the kernel for 8.
const std::vector<Rows> kMore = {{0, 129, 4}, {0, 61, 3}, {0, 16, 1}};
constexpr unsigned kTokens = 143;

/// Many items; those of other sequences have none of their rows.
device::PlanOptions split_options(std::uint32_t wanted = 64) {
  device::PlanOptions options;
  options.wanted_items = wanted;
  options.max_shared_rows = 0;
  return options;
}

template <class AnyCase>
void set_fast(AnyCase& problem) {
  problem.math = {true, 80};
  problem.rounds_queries = false;
}

template <class Stored, unsigned kDim>
void check_fast(const AttentionModel& model, const std::vector<Rows>& batch,
                const device::PlanOptions& options = {}, unsigned tokens = kTokens) {
  CAPTURE(kDim, sizeof(Stored), model.heads, model.kv_heads, tokens, model.window, model.soft_cap);
  AttentionCase<Stored, kDim> problem(model, 1, tokens, 0);
  set_fast(problem);
  const auto plan = problem.plan(batch, options);
  const cuda::AttentionTiles tiles(plan, model.heads / model.kv_heads, kDim, true);
  CHECK((tiles.narrow.empty() && tiles.wide.empty()));
  const auto got = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
  check_near(got, problem.wanted(batch), 0.0, kTolerance);
}

}  // namespace

TEMPLATE_TEST_CASE("fast attention against float64", "", cuda::F16, cuda::BF16, std::int8_t) {
  for (const std::vector<Rows>& batch : {kFew, kMore}) {
    AttentionModel model;
    check_fast<TestType, 64>(model, batch);
    check_fast<TestType, 64>(model, batch, split_options());
    for (const unsigned window : {1u, 5u, 64u, 100u}) {
      model.window = window;
      check_fast<TestType, 64>(model, batch);
    }
    model.soft_cap = 2.0f;
    model.scale = 1.0f;
    check_fast<TestType, 64>(model, batch);
    model.alibi = true;
    check_fast<TestType, 64>(model, batch, split_options());
    model.soft_cap = 0.0f;
    model.window = 0;
    model.scale = 0.125f;
    check_fast<TestType, 64>(model, batch);
  }
}

TEST_CASE("fast attention maps query heads to KV heads, whatever the group") {
  for (const unsigned group : {1u, 2u, 3u, 5u, 7u, 8u}) {
    AttentionModel model;
    model.heads = model.kv_heads * group;
    model.segment_tokens = 64;
    const std::vector<Rows> batch = {{0, 69, 1}, {0, 0, 1}, {0, 64, 1}};
    check_fast<cuda::BF16, 64>(model, batch, split_options(1), 70);
    check_fast<std::int8_t, 64>(model, batch, split_options(), 70);
  }
}

TEST_CASE("fast attention of every head dimension") {
  const AttentionModel model;
  check_fast<cuda::BF16, 80>(model, kFew);
  check_fast<cuda::F16, 96>(model, kMore);
  check_fast<cuda::F16, 112>(model, kFew);
  check_fast<cuda::BF16, 128>(model, kMore);
  check_fast<cuda::F16, 256>(model, kFew);
  check_fast<cuda::BF16, 256>(model, kMore, split_options());
  check_fast<std::int8_t, 80>(model, kMore);
  check_fast<std::int8_t, 96>(model, kFew, split_options());
  check_fast<std::int8_t, 112>(model, kMore);
  check_fast<std::int8_t, 128>(model, kFew);
  check_fast<std::int8_t, 256>(model, kMore);
}

TEST_CASE("fast attention over more blocks than a warp has numbers of at hand") {
  AttentionModel model;
  model.heads = model.kv_heads = 1;
  check_fast<cuda::F16, 64>(model, {{0, 2117, 4}}, {}, 2121);
  check_fast<std::int8_t, 256>(model, {{0, 2120, 1}}, {}, 2121);
}

TEST_CASE("fast attention keeps the order of scores far from zero") {
  AttentionCase<cuda::BF16, 64> problem({}, 1, 100, 0, 0.0f);
  set_fast(problem);
  for (const float scale : {3e3f, -3e3f}) {
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
    check_near(got, problem.wanted(batch), 0.0, kTolerance);
  }
}

TEST_CASE("fast attention shares blocks, and a batch mixes both kernels") {
  AttentionModel model;
  for (const std::uint32_t wanted : {1u, 64u}) {
    AttentionCase<cuda::F16, 64> problem(model, 4, 300, 256);
    set_fast(problem);
    device::PlanOptions options;
    options.wanted_items = wanted;
    // Four samples: 8 rows over what they share, 2 over the rest. The chunk is for the tile kernel,
    // whose queries are rounded.
    const std::vector<Rows> batch = {
        {0, 299, 1}, {1, 299, 1}, {2, 270, 1}, {3, 258, 1}, {0, 100, 20}};
    const auto plan = problem.plan(batch, options);
    const cuda::AttentionTiles tiles(plan, 2, 64, true);
    CHECK(tiles.vector_rows == 8);
    CHECK(tiles.wide.size() + tiles.narrow.size() >= 1);
    const auto got = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
    check_near(got, problem.wanted(batch), 0.0, 4.0 * kRounding<cuda::F16>);
  }
}

TEST_CASE("fast attention: a damaged token shows, but not where it is not seen") {
  const std::vector<Rows> batch = {{0, 79, 2}};  // the first row does not see token 80
  const auto check = [&](auto& problem, auto& damaged) {
    set_fast(problem);
    set_fast(damaged);
    const auto plan = problem.plan(batch, {});
    const auto before = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
    const auto after = run([&](cuda::Stream s) { return damaged.run_on(s, batch, plan); });
    for (std::size_t i = 0; i < after.size(); ++i) {
      const bool sees = i >= after.size() / 2 && i % 256 / 64 >= 2;  // heads of KV head 1
      if (sees != std::isnan(after[i])) FAIL_CHECK("NaN or not: " << i);
      if (!sees && after[i] != before[i]) FAIL_CHECK("changed: " << i);
    }
  };
  AttentionCase<std::int8_t, 64> small({}, 1, 100, 0);
  for (const bool is_v : {false, true}) {
    auto copy = small;
    copy.set_scale(0, 80, 1, is_v, std::nanf(""));
    check(small, copy);
  }
  AttentionCase<cuda::F16, 64> large({}, 1, 100, 0);  // its V is finite: see append_kv
  auto copy = large;
  copy.set_value(0, 80, 1, false, 37, rounded<cuda::F16>(std::nanf("")));
  check(large, copy);
}

#if INCIPIT_CUDA_EMULATED
TEST_CASE("fast attention before sm_80") {
  AttentionCase<cuda::F16, 80> problem({}, 1, kTokens, 0);
  set_fast(problem);
  const auto plan = problem.plan(kMore, {});
  simt::Machine machine;
  machine.options.architecture = 75;
  check_near(problem.run_on(&machine, kMore, plan), problem.wanted(kMore), 0.0, kTolerance);
}

namespace {

/// What 256 keys more cost two samples of a text that share them.
template <class Stored, unsigned kDim>
void check_traffic() {
  CAPTURE(kDim, sizeof(Stored));
  AttentionModel model;
  model.heads = 8;
  const auto counted = [&](unsigned tokens) {
    AttentionCase<Stored, kDim> problem(model, 2, tokens, tokens);
    set_fast(problem);
    const std::vector<Rows> batch = {{0, tokens - 1, 1}, {1, tokens - 1, 1}};
    const auto plan = problem.plan(batch, {});
    CHECK(plan.items.size() == 1);
    return count([&](cuda::Stream s) { problem.run_on(s, batch, plan); });
  };
  const simt::Counters less = counted(256), more = counted(512);
  const std::size_t kv = model.kv_heads * 256 * AttentionCase<Stored, kDim>::token_bytes();
  const std::size_t ids = model.kv_heads * 256 / 16 * sizeof(device::BlockId);
  // The merge of the shared run has nothing more to read: the item leaves one state.
  const std::size_t states = 2 * model.heads * 2 * sizeof(cuda::SoftmaxState) * 32;
  const std::size_t bytes = more.global_load_bytes - less.global_load_bytes;
  CHECK(bytes >= kv + ids);
  CHECK(bytes <= kv + ids + states);
  const std::size_t sectors = more.global_load_sectors - less.global_load_sectors;
  CAPTURE(sectors * 32, bytes);
  CHECK(sectors * 32 <= kv + kv / 50 + ids * 8 + states);  // whole sectors: loads are coalesced
  CHECK(more.async_copy_bytes == 0);
  CHECK(more.bank_conflicts == 0);
}

}  // namespace

TEST_CASE("fast attention reads each KV byte once per KV head and item") {
  check_traffic<cuda::F16, 64>();
  check_traffic<cuda::BF16, 128>();
  check_traffic<cuda::F16, 256>();
  check_traffic<std::int8_t, 64>();
  check_traffic<std::int8_t, 128>();
}
#endif
