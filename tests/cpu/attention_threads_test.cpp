// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "cpu/attention_settings.h"

// Bits do not depend on how the work is cut and which thread takes what.

namespace incipit::testing::attention {
namespace {

TEST_CASE("However the work is cut, on any number of threads") {
  struct Cut {
    unsigned threads;
    std::uint32_t wanted_items, max_item_rows, max_shared_rows;
  };
  constexpr Cut kCuts[] = {{1, 1, 64, 0}, {1, 3, 3, 64},  {1, 16, 64, 64}, {2, 1, 1, 0},
                           {2, 2, 5, 64}, {2, 16, 16, 0}, {3, 4, 64, 64},  {3, 16, 1, 64}};
  for_each_setting([&](const Setting& setting) {
    TestPool pool(setting.shape, 140, 9);
    const TestSequence prompt = make_sequence(pool, 530, 1);
    const TestSequence a = make_sequence(pool, 550, 2, &prompt, 530),
                       b = make_sequence(pool, 1100, 3, &prompt, 530);
    const Batch batch = Batch().add(prompt, 505, 20).add(a, 549, 1).add(b, 1097, 3);
    const std::vector<float> expected = run_attention(setting.path, pool, setting.params, batch);
    for (const Cut& cut : kCuts) {
      Run run;
      run.threads = cut.threads;
      run.plan.wanted_items = cut.wanted_items;
      run.plan.max_item_rows = cut.max_item_rows;
      run.plan.max_shared_rows = cut.max_shared_rows;
      CAPTURE(cut.threads, cut.wanted_items, cut.max_item_rows, cut.max_shared_rows);
      CHECK(same_bits(run_attention(setting.path, pool, setting.params, batch, run), expected));
    }
  });
}

TEST_CASE("Samples whose own tokens follow the shared ones") {
  for_each_setting([&](const Setting& setting) {
    TestPool pool(setting.shape, 400, 12);
    const TestSequence prompt = make_sequence(pool, 520, 1);
    std::vector<TestSequence> samples;
    for (std::uint32_t i = 0; i < 18; ++i) {
      // The fourth is in its fourth segment, and no follower.
      samples.push_back(make_sequence(pool, i == 3 ? 800 : 530 + 13 * i, 10 + i, &prompt, 520));
    }
    Batch together;
    std::vector<float> expected;
    const auto add = [&](const TestSequence& sequence, std::uint32_t first, std::uint32_t rows) {
      together.add(sequence, first, rows);
      const std::vector<float> alone =
          run_attention(setting.path, pool, setting.params, Batch().add(sequence, first, rows));
      expected.insert(expected.end(), alone.begin(), alone.end());
    };
    for (const TestSequence& sample : samples) add(sample, sample.length - 1, 1);
    // Rows of tables that are there already share a last segment with rows far from them.
    add(samples[3], 762, 1);
    add(samples[17], samples[17].length - 3, 2);
    for (const unsigned threads : {1u, 2u, 3u}) {
      Run run;
      run.threads = threads;
      run.plan = cpu::attention_plan_options(threads);
      CAPTURE(threads);
      CHECK(same_bits(run_attention(setting.path, pool, setting.params, together, run), expected));
    }
  });
}

TEST_CASE("Scratch may be used again for other shapes and plans") {
  const Path path = paths().back();
  base::ThreadPool threads(2);
  cpu::AttentionScratch scratch;
  for (const std::size_t head_dim : {64u, 16u, 128u}) {
    for (const std::uint32_t wanted : {1u, 8u, 3u}) {
      const KvFormat type = wanted == 3 ? KvFormat::kBF16 : KvFormat::kInt8;
      TestPool pool({1, 2, head_dim, type}, 80, 3);
      const TestSequence sequence = make_sequence(pool, 1000, 1);
      device::AttentionParams params;
      params.heads = 6;
      Run run;
      run.threads = 2;
      run.plan.wanted_items = wanted;
      const Batch batch = Batch().add(sequence, 990, 10);
      CHECK(same_bits(run_attention(path, pool, params, batch, run, threads, scratch),
                      run_attention(path, pool, params, batch)));
    }
  }
}

}  // namespace
}  // namespace incipit::testing::attention
