// SPDX-License-Identifier: Apache-2.0
// What attention reads and multiplies, against what it must: the table in docs/cuda.md.
#include "cuda/attention_case.h"
#include "cuda/kernels/attention_merge.cuh"

using namespace incipit;
using namespace incipit::testing;

#if INCIPIT_CUDA_EMULATED
namespace {

/// Bytes of KV that one row at the end of 512 tokens reads, of those that there are.
template <class Stored, unsigned kDim>
void check_decode() {
  CAPTURE(kDim, sizeof(Stored));
  AttentionModel model;
  model.heads = 8;
  AttentionCase<Stored, kDim> problem(model, 1, 512, 0);
  const std::vector<Rows> batch = {{0, 511, 1}};
  for (const std::uint32_t wanted : {1u, 8u}) {
    device::PlanOptions options;
    options.wanted_items = wanted;
    const auto plan = problem.plan(batch, options);
    const auto counters = count([&](cuda::Stream s) { problem.run_on(s, batch, plan); });
    CHECK(counters.async_copy_bytes == model.kv_heads * 512 * problem.token_bytes());
    CHECK(counters.bank_conflicts == 0);
  }
}

/// Multiplications of all fragments, over those of the pairs of row and key that see each other.
template <class Stored, unsigned kDim>
double prefill_waste(unsigned tokens, unsigned window) {
  AttentionModel model;
  model.heads = 4;
  model.kv_heads = 1;
  model.window = window;
  model.segment_tokens = 256;
  AttentionCase<Stored, kDim> problem(model, 1, tokens, 0);
  const std::vector<Rows> batch = {{0, 0, tokens}};
  const auto plan = problem.plan(batch, {});
  const auto counters = count([&](cuda::Stream s) { problem.run_on(s, batch, plan); });
  CHECK(counters.bank_conflicts == 0);
  std::uint64_t pairs = 0;
  for (unsigned row = 0; row < tokens; ++row) {
    pairs += window == 0 ? row + 1 : std::min(row + 1, window);
  }
  constexpr double kOfProduct = 16 * 8 * 16;
  const double needed = double(pairs) * model.heads * kDim * 2;  // scores and values
  return static_cast<double>(counters.products) * kOfProduct / needed;
}

}  // namespace

TEST_CASE("exact attention of one row reads each KV byte once") {
  check_decode<cuda::F16, 64>();
  check_decode<cuda::BF16, 128>();
  check_decode<cuda::F16, 256>();
  check_decode<std::int8_t, 64>();
  check_decode<std::int8_t, 128>();
}

TEST_CASE("attention of a prompt multiplies little that masks hide") {
  // Tiles of 32 tokens by 32 keys, and one fragment in 33 for the sum of the weights.
  CHECK(prefill_waste<cuda::BF16, 128>(512, 0) <= 1.10);
  CHECK(prefill_waste<std::int8_t, 128>(512, 0) <= 1.10);
  // By 64 keys, and one fragment in 17.
  CHECK(prefill_waste<cuda::F16, 64>(512, 0) <= 1.20);
  // Tiles on the edge of the window, too.
  CHECK(prefill_waste<cuda::BF16, 128>(512, 128) <= 1.50);
}

TEST_CASE("the merge reads and writes each value once, in whole sectors") {
  constexpr unsigned kRows = 3, kHeads = 4, kDim = 128, kSegments = 8, kTokens = 256;
  std::vector<device::SplitRow> split;
  for (std::uint32_t row = 0; row < kRows; ++row) split.push_back({row, 0, row * kSegments, 2});
  constexpr std::size_t kStates = std::size_t{kRows} * kSegments * kHeads;
  const auto counters = count([&](cuda::Stream stream) {
    DeviceArray<device::SplitRow> split_rows(split);
    DeviceArray<std::uint32_t> positions(kRows, kSegments * kTokens - 1);
    DeviceArray<cuda::SoftmaxState> states(kStates, {0.5f, 1.0f});
    DeviceArray<float> values(kStates * kDim, 1.0f), out(kRows * kHeads * kDim, 0.0f);
    cuda::PagedAttentionParams params;
    params.out = out.data();
    params.out_stride = kHeads * kDim;
    params.plan.positions = positions.data();
    params.plan.split_rows = split_rows.data();
    params.plan.split_row_count = kRows;
    params.plan.segment_tokens = kTokens;
    params.states = states.data();
    params.state_values = values.data();
    params.heads = kHeads;
    params.kv_heads = 1;
    params.head_dim = kDim;
    cuda::attention_merge(stream, params);
  });
  CHECK(counters.global_store_bytes == kRows * kHeads * kDim * 4);
  CHECK(counters.global_store_sectors * 32 == counters.global_store_bytes);
  // One sector per state besides, and what each row and head looks up.
  constexpr std::size_t kValues = kStates * kDim * 4, kLookUps = kRows * kHeads * 4 * 32;
  CHECK(counters.global_load_sectors * 32 <= kValues + kStates * 32 + kLookUps);
}
#endif
