// SPDX-License-Identifier: Apache-2.0
// Where attention kernels have been known to go wrong: large offsets, rows without keys, damaged
// neighbours, keys read more than once.
#include <sys/mman.h>

#include "cuda/attention_case.h"
#include "cuda/kernels/append_kv.cuh"

using namespace incipit;
using namespace incipit::testing;

namespace {

using Case = AttentionCase<cuda::BF16, 64>;

/// Address space of any size, of which only what is written takes memory.
class SparsePool {
 public:
  explicit SparsePool(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    REQUIRE(data_ != MAP_FAILED);
  }
  ~SparsePool() { munmap(data_, bytes_); }
  SparsePool(const SparsePool&) = delete;
  SparsePool& operator=(const SparsePool&) = delete;
  unsigned char* data() const { return static_cast<unsigned char*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

std::vector<float> queries_of(const Case& problem, const std::vector<Rows>& batch) {
  std::vector<float> q;
  const std::size_t width = problem.model.heads * 64;
  for (const Rows& rows : batch) {
    const float* const from = &problem.queries[rows.text][rows.first * width];
    q.insert(q.end(), from, from + rows.count * width);
  }
  return q;
}

/// A plan made by hand: one row against two segments, one item each.
device::AttentionPlan split_plan(const Case& problem, std::uint32_t position,
                                 std::uint32_t block_count) {
  device::AttentionPlan plan;
  const std::uint32_t tokens = problem.model.segment_tokens;
  plan.segment_tokens = tokens;
  plan.positions = {position};
  plan.rows = {0};
  plan.blocks = problem.blocks[0];
  plan.split_rows = {{.row = 0, .first_segment = 0, .first_state = 0, .items = 2}};
  plan.split_index = {0};
  plan.states = position / tokens + 1;
  const std::uint32_t whole = tokens / 16;
  plan.items = {{0, 1, 0, std::min(whole, block_count), 0, 1},
                {0, 1, whole, block_count > whole ? block_count - whole : 0, 1, 2, false}};
  return plan;
}

}  // namespace

#if INCIPIT_CUDA_EMULATED
TEST_CASE("block numbers beyond 2^31 elements and 65,535") {
  Case problem({}, 1, 150, 0);
  problem.math.fast = GENERATE(false, true);
  const std::vector<Rows> batch = {{0, 140, problem.math.fast ? 3u : 10u}};
  const auto plan = problem.plan(batch, {});
  const auto wanted = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });

  const std::size_t bytes = problem.layout().block_bytes();
  const std::size_t far = (std::size_t{1} << 34) / bytes;  // 2^33 elements from the start
  const SparsePool pool((far * 3 + 64) * bytes);
  Case moved({}, 1, 150, 0);
  moved.math = problem.math;
  for (std::size_t b = 0; b < moved.blocks[0].size(); ++b) {
    device::BlockId& id = moved.blocks[0][b];
    const std::size_t from = id * bytes;
    id = static_cast<device::BlockId>(far * (b % 4) + b);
    std::copy_n(problem.pool.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                pool.data() + id * bytes);
  }
  const auto moved_plan = moved.plan(batch, {});
  simt::Machine machine;
  CHECK(same_bits(
      moved.run_on_pool(&machine, pool.data(), queries_of(problem, batch), moved_plan, false),
      wanted));
}

TEST_CASE("each KV byte is read once per KV head and item") {
  AttentionModel model;
  model.heads = 8;
  Case problem(model, 4, 256, 256);
  const auto bytes_of = [&](const std::vector<Rows>& batch, const device::PlanOptions& options) {
    const auto plan = problem.plan(batch, options);
    return count([&](cuda::Stream s) { problem.run_on(s, batch, plan); }).async_copy_bytes;
  };
  const std::size_t once = model.kv_heads * 256 * Case::token_bytes();
  CHECK(bytes_of({{0, 255, 1}}, {}) == once);
  // Four samples of a prompt that fills two segments share all of it.
  const std::vector<Rows> samples = {{0, 255, 1}, {1, 255, 1}, {2, 255, 1}, {3, 255, 1}};
  CHECK(bytes_of(samples, {}) == once);
  device::PlanOptions unshared;
  unshared.max_shared_rows = 0;
  CHECK(bytes_of(samples, unshared) == 4 * once);
  // Split, each part reads its own.
  device::PlanOptions split;
  split.wanted_items = 8;
  CHECK(bytes_of({{0, 255, 1}}, split) == once);
  // 20 rows of 4 heads are a tile of 80 rows.
  CHECK(bytes_of({{0, 236, 20}}, {}) == once);
  // A window leaves out the tiles that nobody sees.
  model.window = 10;
  Case narrow(model, 1, 256, 0);
  const std::vector<Rows> last = {{0, 255, 1}};
  const auto plan = narrow.plan(last, {});
  const auto counters = count([&](cuda::Stream s) { narrow.run_on(s, last, plan); });
  CHECK(counters.async_copy_bytes == once / 4);
}

TEST_CASE("what a tile costs in fragments") {
  AttentionModel model;
  model.heads = 16;
  model.kv_heads = 1;
  Case problem(model, 1, 64, 0);
  const std::vector<Rows> batch = {{0, 56, 8}};  // 128 rows, 64 keys
  const auto plan = problem.plan(batch, {});
  const auto counters = count([&](cuda::Stream s) { problem.run_on(s, batch, plan); });
  // 4 warps, 2 row tiles, 64 keys: 8 x 4 products of scores, 4 x 8 of values, 4 of their sum.
  CHECK(counters.products == 4u * 2u * (8 * 4 + 4 * 8 + 4));
  // Q once per row tile and step, K and V once for both row tiles.
  CHECK(counters.matrix_loads == 4u * (2 * 4 + 4 * 4 + 4 * 4));
  CHECK(counters.bank_conflicts == 0);
}
#endif

TEST_CASE("rows that see no key are zero") {
  Case problem({}, 1, 300, 0);
  problem.math.fast = GENERATE(false, true);
  const auto q = queries_of(problem, {{0, 260, 1}});
  DeviceArray<unsigned char> pool(problem.pool);
  const auto result = [&](const device::AttentionPlan& plan) {
    return run([&](cuda::Stream s) { return problem.run_on_pool(s, pool.data(), q, plan, false); });
  };
  SECTION("an item without blocks, as where queries are longer than the keys") {
    device::AttentionPlan plan = split_plan(problem, 200, 0);
    for (const float x : result(plan)) CHECK(x == 0.0f);  // two empty states merged
    plan.items = {{0, 1, 0, 0, 0, 2}};
    plan.split_rows.clear();
    plan.split_index = {device::AttentionPlan::kWhole};
    for (const float x : result(plan)) CHECK(x == 0.0f);
  }
  SECTION("among rows that see keys") {
    device::AttentionPlan plan;
    plan.segment_tokens = 128;
    plan.positions = {260, 100};  // the second sees nothing of the only item's segment
    plan.rows = {0, 1};
    plan.blocks.assign(problem.blocks[0].begin() + 8, problem.blocks[0].end());
    plan.split_index.assign(2, device::AttentionPlan::kWhole);
    plan.items = {{0, 2, 0, 11, 1, 3}};
    auto both = q;
    both.insert(both.end(), q.begin(), q.end());
    const auto got =
        run([&](cuda::Stream s) { return problem.run_on_pool(s, pool.data(), both, plan, false); });
    for (std::size_t i = 0; i < q.size(); ++i) CHECK(got[q.size() + i] == 0.0f);
    CHECK(std::any_of(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(q.size()),
                      [](float x) { return x != 0.0f; }));
  }
}

TEST_CASE("one empty state merges as if it were not there") {
  AttentionModel model;
  model.window = 60;
  Case problem(model, 1, 250, 0);
  problem.math.fast = GENERATE(false, true);
  const std::vector<Rows> batch = {{0, 200, 1}};  // sees keys of the second segment only
  DeviceArray<unsigned char> pool(problem.pool);
  const auto plan = split_plan(problem, 200, 16);
  const auto q = queries_of(problem, batch);
  const auto got =
      run([&](cuda::Stream s) { return problem.run_on_pool(s, pool.data(), q, plan, false); });
  check_near(got, problem.wanted(batch), 0.0, 3 * kRounding<cuda::BF16>);
}

namespace {

/// The rows 60 to 99 before and after K or V of KV head 1 of token 80 was damaged: those that see
/// it are NaN, the others what they were.
template <class AnyCase>
void check_damage(AnyCase& before_case, AnyCase& after_case) {
  const std::vector<Rows> batch = {{0, 60, 40}};
  const auto plan = before_case.plan(batch, {});
  const auto before = run([&](cuda::Stream s) { return before_case.run_on(s, batch, plan); });
  const auto after = run([&](cuda::Stream s) { return after_case.run_on(s, batch, plan); });
  const AttentionModel& model = before_case.model;
  const std::size_t width = model.heads * 64;
  unsigned spread = 0, hidden = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const std::size_t position = 60 + i / width;
    const bool sees = position >= 80 && (model.window == 0 || position < 80 + model.window) &&
                      i % width / 64 >= 2;  // heads of KV head 1
    if (!sees && (std::isnan(after[i]) || after[i] != before[i])) ++spread;
    if (sees && !std::isnan(after[i])) ++hidden;
  }
  CHECK(spread == 0);
  CHECK(hidden == 0);
  // The last row before it, decoded when it was not there yet.
  const std::vector<Rows> last = {{0, 79, 1}};
  const auto alone =
      run([&](cuda::Stream s) { return after_case.run_on(s, last, after_case.plan(last, {})); });
  CHECK(std::memcmp(alone.data(), &after[19 * width], width * sizeof(float)) == 0);
}

/// Writes token 80 anew by append_kv, with `value` somewhere in V of KV head 1.
template <class Stored>
void append(AttentionCase<Stored, 64>& problem, float value) {
  const AttentionModel& model = problem.model;
  DeviceArray<float> k(model.kv_heads * 64, 0.5f);
  std::vector<float> values(model.kv_heads * 64, 0.25f);
  values[64 + 37] = value;
  DeviceArray<float> v(values);
  DeviceArray<device::KvSlot> slots({{problem.blocks[0][80 / 16], 80 % 16}});
  DeviceArray<unsigned char> pool(problem.pool);
  cuda::AppendKvParams params;
  params.k = k.data();
  params.v = v.data();
  params.slots = slots.data();
  params.pool = pool.data();
  params.block_bytes = static_cast<std::int64_t>(problem.layout().block_bytes());
  params.k_offset = static_cast<std::int64_t>(problem.layout().k_offset(model.layer, 0));
  params.v_offset = static_cast<std::int64_t>(problem.layout().v_offset(model.layer, 0));
  params.head_bytes = static_cast<std::int64_t>(problem.layout().head_bytes());
  params.rows = 1;
  params.kv_heads = model.kv_heads;
  params.head_dim = 64;
  problem.pool = run([&](cuda::Stream s) {
    cuda::append_kv<Stored>(s, params);
    return pool.read();
  });
}

}  // namespace

TEST_CASE("int8: a damaged token shows, but not where it is not seen") {
  AttentionCase<std::int8_t, 64> problem({}, 1, 100, 0);
  for (const bool is_v : {false, true}) {
    auto copy = problem;
    copy.set_scale(0, 80, 1, is_v, std::nanf(""));
    check_damage(problem, copy);
  }
}

TEMPLATE_TEST_CASE("16 bits: a token whose V is not finite shows, but not where it is not seen", "",
                   cuda::F16, cuda::BF16) {
  AttentionModel model;
  for (const unsigned window : {0u, 10u}) {
    model.window = window;
    AttentionCase<TestType, 64> problem(model, 1, 100, 0);
    append(problem, 1.0f);
    for (const float value : {3.4e38f, -HUGE_VALF, std::nanf("")}) {
      auto copy = problem;
      append(copy, value);
      check_damage(problem, copy);
    }
  }
  // What is finite as rounded stays.
  AttentionCase<cuda::F16, 64> problem(model, 1, 100, 0);
  auto copy = problem;
  append(problem, 65504.0f);
  append(copy, 65519.0f);
  CHECK(problem.pool == copy.pool);
  append(copy, 65520.0f);
  CHECK(problem.pool != copy.pool);
}

TEST_CASE("int8: tokens of zeros weigh nothing, scales are heard") {
  AttentionCase<std::int8_t, 64> problem({}, 1, 80, 0);
  for (unsigned token = 0; token < 80; token += 3) {
    problem.set_scale(0, token, 0, false, 0.0f);
    problem.set_scale(0, token, 0, true, 0.0f);
    problem.set_scale(0, token + 1 < 80 ? token + 1 : token, 1, true, 40.0f);
  }
  const std::vector<Rows> batch = {{0, 40, 40}};
  const auto plan = problem.plan(batch, {});
  const auto got = run([&](cuda::Stream s) { return problem.run_on(s, batch, plan); });
  check_near(got, problem.wanted(batch), 3 * kRounding<cuda::BF16>, 2000 * kRounding<cuda::BF16>);
}
