// SPDX-License-Identifier: Apache-2.0
// A row has one result, to the last bit, however the work around it is cut.
#include "cuda/attention_case.h"

using namespace incipit;
using namespace incipit::testing;

namespace {

constexpr unsigned kTokens = 300;

struct Way {
  std::vector<Rows> batch = {};
  device::PlanOptions options = {};
  bool all_wide = false;
  bool windowed = false;  // the plan leaves out segments that the model's window hides
};

std::vector<Way> ways(bool has_window) {
  std::vector<Way> all;
  all.push_back({{{0, 0, kTokens}}});
  all.push_back({{{0, 0, 37}}});
  all.push_back({{{0, 37, 163}}});
  for (const unsigned prefix : {1u, 127u, 128u, 129u, 299u}) {
    all.push_back({{{0, prefix, std::min(20u, kTokens - prefix)}}});
  }
  for (const unsigned position : {0u, 15u, 16u, 63u, 64u, 200u, 255u, 256u}) {
    all.push_back({{{0, position, 1}}});
  }
  device::PlanOptions split;
  split.wanted_items = 64;
  device::PlanOptions thin;
  thin.max_item_rows = 3;
  thin.wanted_items = 5;
  device::PlanOptions unshared;
  unshared.max_shared_rows = 0;
  const std::vector<Rows> samples = {{0, 299, 1}, {1, 299, 1}, {2, 270, 1}, {1, 258, 9}};
  const std::vector<Rows> mixed = {{2, 3, 1}, {0, 128, 150}, {1, 0, 1}, {0, 299, 1}, {2, 255, 4}};
  for (const bool wide : {false, true}) {
    all.push_back({{{0, 290, 1}}, split, wide});
    all.push_back({samples, {}, wide});
    all.push_back({samples, split, wide});
    all.push_back({samples, unshared, wide});
  }
  all.push_back({mixed, {}});
  all.push_back({mixed, split});
  all.push_back({mixed, thin});
  all.push_back({{{0, 100, 200}}, split});
  for (std::size_t i = 0, count = has_window ? all.size() : 0; i < count; ++i) {
    Way way = all[i];
    way.windowed = true;
    all.push_back(std::move(way));
  }
  return all;
}

/// Runs all ways; each row must be what the row was where it was computed first.
template <class Stored, unsigned kDim>
void check_ways(const AttentionModel& model) {
  AttentionCase<Stored, kDim> problem(model, 3, kTokens, 256);
  const std::size_t width = model.heads * kDim;
  std::map<std::pair<unsigned, unsigned>, std::vector<float>> known;
  unsigned seed = 0;
  for (const Way& way : ways(model.window > 0)) {
    const auto plan = problem.plan(way.batch, way.options, way.windowed ? model.window : 0);
    CAPTURE(seed, plan.items.size(), plan.split_rows.size(), way.all_wide, way.windowed);
    std::vector<float> got;
#if INCIPIT_CUDA_EMULATED
    simt::Machine machine;
    machine.options.schedule = simt::Schedule::kRandom;
    machine.options.permute_blocks = true;
    machine.options.seed = ++seed;
    got = problem.run_on(&machine, way.batch, plan, way.all_wide);
#else
    ++seed;
    got = problem.run_on(cuda::Stream(), way.batch, plan, way.all_wide);
#endif
    std::size_t at = 0;
    unsigned differing = 0;
    for (const Rows& rows : way.batch) {
      for (unsigned position = rows.first; position < rows.first + rows.count; ++position) {
        const auto from = got.begin() + static_cast<std::ptrdiff_t>(at++ * width);
        const std::vector<float> row(from, from + static_cast<std::ptrdiff_t>(width));
        const auto [found, is_new] = known.try_emplace({rows.text, position}, row);
        if (!is_new && !same_bits(found->second, row)) ++differing;
      }
    }
    CHECK(differing == 0);
  }
}

}  // namespace

TEST_CASE("attention has one result: BF16") { check_ways<cuda::BF16, 64>({}); }

TEST_CASE("attention has one result: int8, wide heads in groups of three") {
  AttentionModel model;
  model.heads = 3;
  model.kv_heads = 1;
  check_ways<std::int8_t, 80>(model);
}

TEST_CASE("attention has one result: F16 with a window, a soft cap and slopes") {
  AttentionModel model;
  model.heads = 2;
  model.kv_heads = 1;
  model.window = 90;
  model.soft_cap = 20.0f;
  model.alibi = true;
  check_ways<cuda::F16, 64>(model);
}

TEST_CASE("where blocks lie makes no difference") {
  const AttentionModel model;
  AttentionCase<cuda::BF16, 64> problem(model, 1, kTokens, 0), moved(model, 1, kTokens, 0);
  std::reverse(moved.blocks[0].begin(), moved.blocks[0].end());
  const std::size_t bytes = problem.layout().block_bytes();
  for (std::size_t b = 0; b < problem.blocks[0].size(); ++b) {
    std::copy_n(&problem.pool[problem.blocks[0][b] * bytes], bytes,
                &moved.pool[moved.blocks[0][b] * bytes]);
  }
  const std::vector<Rows> batch = {{0, 280, 20}};
  const auto plan = problem.plan(batch, {}), moved_plan = moved.plan(batch, {});
  CHECK(plan.blocks != moved_plan.blocks);
  const auto here = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
  const auto there = run([&](cuda::Stream s) { return moved.run_on(s, batch, moved_plan); });
  CHECK(same_bits(here, there));
}
