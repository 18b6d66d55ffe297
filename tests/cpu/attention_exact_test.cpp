// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>
#include <vector>

#include "cpu/attention_settings.h"
#include "support/catch.h"

// A row's bits depend on its query and keys only: not on the rows beside it, the chunks of its
// prompt, who shares its blocks, how the work is cut, the threads, or what lies where it sees
// nothing. (What the bits should be is the business of attention_test.cpp.)

namespace incipit::testing::attention {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
/// All rows of a sequence computed at once, for comparison with every other way.
class Whole {
 public:
  Whole(const Setting& setting, TestPool& pool, const TestSequence& sequence)
      : out_(run_attention(setting.path, pool, setting.params,
                           Batch().add(sequence, 0, sequence.length))) {}

  /// `got` holds rows [first, first + count) from row `at` on.
  bool matches(const std::vector<float>& got, std::size_t at, std::uint32_t first,
               std::uint32_t count) const {
    return same_bits(std::span(got).subspan(at * kWidth, count * kWidth),
                     std::span(out_).subspan(first * kWidth, count * kWidth));
  }
  bool matches(const std::vector<float>& got) const { return same_bits(got, out_); }

 private:
  std::vector<float> out_;
};

/// The first `length` tokens of a sequence in other blocks, and NaN behind them.
TestSequence cut_copy(TestPool& pool, const TestSequence& sequence, std::uint32_t length) {
  TestSequence copy{{}, length, sequence.query_seed};
  for (std::uint32_t position = 0; position < length; ++position) {
    if (position % 16 == 0) copy.blocks.push_back(pool.take());
    pool.copy_token(sequence.blocks[position / 16], copy.blocks.back(), position % 16);
  }
  return copy;
}

TEST_CASE("A prompt in one go equals any chunks of it") {
  for_each_setting([](const Setting& setting) {
    Random random(4);
    for (const std::uint32_t n : {1u, 15u, 16u, 17u, 255u, 256u, 257u, 513u}) {
      TestPool pool(setting.shape, 40, n);
      const TestSequence sequence = make_sequence(pool, n, n);
      const Whole whole(setting, pool, sequence);
      for (std::uint32_t first = 0; first < n;) {
        const std::uint32_t count = std::min(n - first, random.between(1, 260));
        const std::vector<float> got =
            run_attention(setting.path, pool, setting.params, Batch().add(sequence, first, count));
        CAPTURE(n, first, count);
        CHECK(whole.matches(got, 0, first, count));
        first += count;
      }
    }
  });
}

TEST_CASE("Rows one by one more, through tiles of every size") {
  for_each_setting([](const Setting& setting) {
    constexpr std::uint32_t kFirst = 250;  // so that some rows see a second segment
    TestPool pool(setting.shape, 40, 8);
    const TestSequence sequence = make_sequence(pool, 280, 4);
    const Whole whole(setting, pool, sequence);
    for (std::uint32_t count = 1; count <= 26; ++count) {
      const std::vector<float> got =
          run_attention(setting.path, pool, setting.params, Batch().add(sequence, kFirst, count));
      CAPTURE(count);
      CHECK(whole.matches(got, 0, kFirst, count));
    }
  });
}

TEST_CASE("A row alone, with nothing behind it, equals the row in its prompt") {
  for_each_setting([](const Setting& setting) {
    TestPool pool(setting.shape, 300, 5);
    const TestSequence sequence = make_sequence(pool, 280, 1);
    const Whole whole(setting, pool, sequence);
    for (const std::uint32_t position :
         {0u, 1u, 2u, 14u, 15u, 16u, 17u, 30u, 31u, 32u, 33u, 254u, 255u, 256u, 257u, 279u}) {
      const TestSequence alone = cut_copy(pool, sequence, position + 1);
      const std::vector<float> got =
          run_attention(setting.path, pool, setting.params, Batch().add(alone, position, 1));
      CAPTURE(position);
      CHECK(whole.matches(got, 0, position, 1));
    }
  });
}

TEST_CASE("What other rows wrote behind a row, or lies before its window, does not reach it") {
  for_each_setting([](const Setting& setting) {
    TestPool pool(setting.shape, 40, 5);
    const TestSequence sequence = make_sequence(pool, 300, 1);
    const Whole whole(setting, pool, sequence);
    for (const std::uint32_t position : {1u, 16u, 63u, 255u, 256u, 270u}) {
      const TestSequence poisoned = private_copy(pool, sequence);
      const std::uint32_t window = setting.params.window;
      for (std::uint32_t key = 0; key < 300; ++key) {
        const bool seen = key <= position && (window == 0 || key + window > position);
        if (!seen) pool.fill_token(poisoned.blocks[key / 16], key % 16, kNan);
      }
      // The row in the middle of others, which do see the poison.
      const std::uint32_t first = position < 5 ? 0 : position - 5;
      const std::vector<float> got =
          run_attention(setting.path, pool, setting.params, Batch().add(poisoned, first, 20));
      CAPTURE(position);
      CHECK(whole.matches(got, position - first, position, 1));
      pool.give_back(poisoned.blocks);
    }
  });
}

TEST_CASE("A sequence alone equals the sequence next to others") {
  for_each_setting([](const Setting& setting) {
    TestPool pool(setting.shape, 100, 6);
    const TestSequence a = make_sequence(pool, 290, 1), b = make_sequence(pool, 17, 2),
                       c = make_sequence(pool, 530, 3);
    const Whole whole_a(setting, pool, a), whole_b(setting, pool, b), whole_c(setting, pool, c);
    const std::vector<float> got =
        run_attention(setting.path, pool, setting.params,
                      Batch().add(c, 529, 1).add(a, 250, 40).add(b, 0, 17).add(c, 200, 3));
    CHECK(whole_c.matches(got, 0, 529, 1));
    CHECK(whole_a.matches(got, 1, 250, 40));
    CHECK(whole_b.matches(got, 41, 0, 17));
    CHECK(whole_c.matches(got, 58, 200, 3));
  });
}

TEST_CASE("Samples that share a prefix equal samples with blocks of their own") {
  for_each_setting([](const Setting& setting) {
    for (const std::uint32_t shared : {16u, 255u, 256u, 290u, 512u}) {
      TestPool pool(setting.shape, 260, shared);
      const TestSequence prompt = make_sequence(pool, shared, 1);
      std::vector<TestSequence> samples;
      Batch together;
      for (std::uint32_t i = 0; i < 5; ++i) {
        samples.push_back(make_sequence(pool, shared + 3 + 5 * i, 10 + i, &prompt, shared));
      }
      for (const TestSequence& sample : samples) together.add(sample, sample.length - 2, 2);
      const std::vector<float> got = run_attention(setting.path, pool, setting.params, together);
      for (std::uint32_t i = 0; i < 5; ++i) {
        const TestSequence own = private_copy(pool, samples[i]);
        const std::vector<float> alone =
            run_attention(setting.path, pool, setting.params, Batch().add(own, own.length - 2, 2));
        CAPTURE(shared, i);
        CHECK(same_bits(alone, std::span(got).subspan(2 * i * kWidth, 2 * kWidth)));
      }
    }
  });
}

TEST_CASE("Rows that share blocks they only partly see") {
  for_each_setting([](const Setting& setting) {
    TestPool pool(setting.shape, 40, 8);
    const TestSequence sequence = make_sequence(pool, 520, 1);
    const Whole whole(setting, pool, sequence);
    // The same block table at different positions.
    const std::vector<float> got =
        run_attention(setting.path, pool, setting.params,
                      Batch().add(sequence, 500, 3).add(sequence, 254, 4).add(sequence, 511, 2));
    CHECK(whole.matches(got, 0, 500, 3));
    CHECK(whole.matches(got, 3, 254, 4));
    CHECK(whole.matches(got, 7, 511, 2));
  });
}

TEST_CASE("A plan that leaves out hidden segments gives the bits of one that masks them") {
  for_each_setting([](const Setting& setting) {
    TestPool pool(setting.shape, 400, 11);
    const TestSequence a = make_sequence(pool, 1800, 1), b = make_sequence(pool, 700, 2),
                       c = make_sequence(pool, 1300, 3, &a, 1024);
    const Batch batch =
        Batch().add(a, 1799, 1).add(b, 440, 260).add(c, 1297, 3).add(a, 900, 5).add(c, 1020, 2);
    device::AttentionParams params = setting.params;
    for (const std::uint32_t window : {1u, 40u, 256u, 257u, 600u}) {
      params.window = window;
      const std::vector<float> expected =
          run_attention(setting.path, pool, params, batch, {.windowed_plan = false});
      for (const std::uint32_t wanted : {1u, 5u, 64u}) {
        Run run;
        run.plan.wanted_items = wanted;
        run.plan.max_item_rows = wanted == 5 ? 7 : 64;
        CAPTURE(window, wanted);
        CHECK(same_bits(run_attention(setting.path, pool, params, batch, run), expected));
      }
    }
  });
}

TEST_CASE("More heads than a tile or a pass holds") {
  for (const Path& path : paths()) {
    TestPool pool({1, 1, 16, KvFormat::kBF16}, 30, 9);
    const TestSequence sequence = make_sequence(pool, 300, 1);
    device::AttentionParams params;
    params.heads = 19;
    const std::vector<float> expected =
        run_attention(path, pool, params, Batch().add(sequence, 260, 40));
    const std::size_t width = 19 * 16;
    for (std::uint32_t i = 0; i < 40; ++i) {
      const std::vector<float> got =
          run_attention(path, pool, params, Batch().add(sequence, 260 + i, 1));
      REQUIRE(same_bits(got, std::span(expected).subspan(i * width, width)));
    }
  }
}

TEST_CASE("AVX2 and AVX-512 give the same bits where neither uses BF16 dot products") {
  const base::CpuFeatures have = base::cpu_features();
  if (!have.avx512) {
    WARN("skipped: no AVX-512 here");
    return;
  }
  const Path avx2{"avx2", {.avx2 = true}}, avx512{"avx512", {.avx2 = true, .avx512 = true}};
  for_each_setting([&](const Setting& setting) {
    TestPool pool(setting.shape, 40, 3);
    const TestSequence sequence = make_sequence(pool, 300, 1);
    const Batch batch = Batch().add(sequence, 0, 300);
    CHECK(same_bits(run_attention(avx2, pool, setting.params, batch),
                    run_attention(avx512, pool, setting.params, batch)));
  });
}

}  // namespace
}  // namespace incipit::testing::attention
