// SPDX-License-Identifier: Apache-2.0
#include "device/attention_plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::device {
namespace {

struct Sequence {
  std::vector<BlockId> blocks;
  std::uint32_t first_position = 0, rows = 0;
};

std::vector<SequenceRows> views(const std::vector<Sequence>& sequences) {
  std::vector<SequenceRows> rows;
  for (const Sequence& s : sequences) rows.push_back({s.blocks, s.first_position, s.rows});
  return rows;
}

AttentionPlan plan_of(const std::vector<Sequence>& sequences, const PlanOptions& options = {},
                      std::uint32_t window = 0) {
  return plan_attention(views(sequences), options, window);
}

/// Hands out block ids that nobody has.
class FreshBlocks {
 public:
  void extend(Sequence& sequence, std::size_t blocks) {
    while (sequence.blocks.size() < blocks) sequence.blocks.push_back(next_++ * 7 % 100003);
  }

 private:
  BlockId next_ = 1;
};

Sequence make_sequence(FreshBlocks& fresh, std::uint32_t first_position, std::uint32_t rows,
                       const Sequence* parent = nullptr, std::size_t shared_blocks = 0) {
  Sequence sequence{{}, first_position, rows};
  if (parent != nullptr) {
    sequence.blocks.assign(parent->blocks.begin(),
                           parent->blocks.begin() + static_cast<std::ptrdiff_t>(shared_blocks));
  }
  fresh.extend(sequence, (first_position + rows + kBlockTokens - 1) / kBlockTokens);
  return sequence;
}

/// Every row meets every one of its segments exactly once, with its own blocks. Those that its
/// window hides may be left out, but for those between two that it meets.
void check_coverage(const std::vector<Sequence>& sequences, const AttentionPlan& plan) {
  const std::size_t segment_blocks = plan.segment_tokens / kBlockTokens;
  std::vector<const Sequence*> sequence_of;
  std::vector<std::uint32_t> positions;
  for (const Sequence& s : sequences) {
    for (std::uint32_t i = 0; i < s.rows; ++i) {
      sequence_of.push_back(&s);
      positions.push_back(s.first_position + i);
    }
  }
  REQUIRE(plan.positions == positions);

  std::vector<std::vector<int>> met(positions.size());
  for (std::uint32_t row = 0; row < met.size(); ++row) met[row].resize(plan.segments_of(row));
  bool right_blocks = true, sees_first = true, within = true;
  for (const AttentionItem& item : plan.items) {
    REQUIRE(item.row_count > 0);
    REQUIRE(item.segment_begin < item.segment_end);
    REQUIRE(item.first_row + item.row_count <= plan.rows.size());
    REQUIRE(item.first_block + item.block_count <= plan.blocks.size());
    std::uint32_t last = 0;
    for (std::uint32_t i = 0; i < item.row_count; ++i) {
      const std::uint32_t row = plan.rows[item.first_row + i];
      const std::uint32_t end = std::min(plan.segments_of(row), item.segment_end);
      last = std::max(last, end);
      sees_first = sees_first && end > item.segment_begin;
      for (std::uint32_t s = item.segment_begin; s < end; ++s) ++met[row][s];
      const std::size_t first = item.segment_begin * segment_blocks;
      const std::size_t needed =
          std::min<std::size_t>(positions[row] / kBlockTokens + 1, end * segment_blocks) - first;
      within = within && needed <= item.block_count;
      for (std::size_t b = 0; b < std::min<std::size_t>(needed, item.block_count); ++b) {
        right_blocks = right_blocks &&
                       plan.blocks[item.first_block + b] == sequence_of[row]->blocks[first + b];
      }
    }
    REQUIRE(last == item.segment_end);
  }
  CHECK(right_blocks);
  CHECK(sees_first);
  CHECK(within);
  bool once = true;
  for (std::uint32_t row = 0; row < met.size(); ++row) {
    const auto first_met = std::find(met[row].begin(), met[row].end(), 1);
    once = once && first_met - met[row].begin() <= plan.first_segment_of(row) &&
           std::all_of(first_met, met[row].end(), [](int n) { return n == 1; }) &&
           std::all_of(met[row].begin(), first_met, [](int n) { return n == 0; });
  }
  CHECK(once);
}

/// Split rows and their partial states are what the items make them.
void check_states(const AttentionPlan& plan) {
  std::map<std::uint32_t, std::uint32_t> items_of, first_of;
  for (const AttentionItem& item : plan.items) {
    for (std::uint32_t i = 0; i < item.row_count; ++i) {
      const std::uint32_t row = plan.rows[item.first_row + i];
      const std::uint32_t first = ++items_of[row] == 1 ? item.segment_begin : first_of[row];
      first_of[row] = std::min(first, item.segment_begin);
    }
  }
  std::map<std::uint32_t, bool> late;  // has an item that is not the first of all rows in it
  for (const AttentionItem& item : plan.items) {
    bool first = true;
    for (std::uint32_t i = 0; i < item.row_count; ++i) {
      first = first && first_of[plan.rows[item.first_row + i]] == item.segment_begin;
    }
    REQUIRE(item.first == first);
    for (std::uint32_t i = 0; i < item.row_count; ++i) {
      if (!first) late[plan.rows[item.first_row + i]] = true;
    }
  }
  REQUIRE(plan.split_index.size() == plan.positions.size());
  std::uint32_t states = 0, split = 0;
  for (std::uint32_t row = 0; row < plan.positions.size(); ++row) {
    if (items_of[row] == 1 && !late[row]) {
      REQUIRE(plan.split_index[row] == AttentionPlan::kWhole);
      continue;
    }
    REQUIRE(plan.split_index[row] == split);
    const SplitRow& entry = plan.split_rows.at(split++);
    REQUIRE(entry.row == row);
    REQUIRE(entry.items == items_of[row]);
    REQUIRE(entry.first_state == states);
    REQUIRE(entry.first_segment == first_of[row]);
    states += plan.segments_of(row) - first_of[row];
  }
  CHECK(plan.split_rows.size() == split);
  CHECK(plan.states == states);
}

/// Rows x segments of blocks that the plan reads: what sharing saves.
std::size_t segments_read(const AttentionPlan& plan) {
  std::size_t sum = 0;
  for (const AttentionItem& item : plan.items) sum += item.segment_end - item.segment_begin;
  return sum;
}

std::uint32_t largest_item(const AttentionPlan& plan) {
  std::uint32_t rows = 0;
  for (const AttentionItem& item : plan.items) rows = std::max(rows, item.row_count);
  return rows;
}

TEST_CASE("Random ragged batches are covered exactly once") {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (int round = 0; round < 400; ++round) {
    PlanOptions options;
    options.segment_tokens = 16u << below(5);
    options.max_item_rows = 1 + below(70);
    options.max_shared_rows = below(20);
    options.least_item_rows = 1 + below(20);
    options.wanted_items = 1 + below(20);
    FreshBlocks fresh;
    std::vector<Sequence> sequences;
    const std::uint32_t count = 1 + below(9);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t rows = below(3) == 0 ? 1 + below(150) : 1 + below(3);
      const std::uint32_t first = below(4) == 0 ? below(3) : below(900);
      const Sequence* parent = i > 0 && below(4) != 0 ? &sequences[below(i)] : nullptr;
      std::size_t shared = 0;
      if (parent != nullptr) {
        const std::size_t most = std::min<std::size_t>(
            parent->blocks.size(), (first + rows + kBlockTokens - 1) / kBlockTokens);
        shared = below(3) == 0 ? most : below(static_cast<std::uint32_t>(most) + 1);
      }
      sequences.push_back(make_sequence(fresh, first, rows, parent, shared));
    }
    CAPTURE(round);
    for (const std::uint32_t window : {0u, 1 + below(1000)}) {
      CAPTURE(window);
      const AttentionPlan plan = plan_of(sequences, options, window);
      check_coverage(sequences, plan);
      check_states(plan);
      CHECK(largest_item(plan) <= options.max_item_rows);
    }
  }
}

TEST_CASE("What a window hides from all rows of an item is not walked") {
  FreshBlocks fresh;
  const std::vector<Sequence> one = {make_sequence(fresh, 4095, 1)};
  CHECK(segments_read(plan_of(one, {}, 0)) == 16);
  CHECK(segments_read(plan_of(one, {}, 4096)) == 16);
  CHECK(segments_read(plan_of(one, {}, 257)) == 2);
  CHECK(segments_read(plan_of(one, {}, 256)) == 1);
  CHECK(plan_of(one, {}, 256).split_rows.empty());
  // Items of 64 rows, each in one segment; with a window of a whole one they see another behind it.
  const std::vector<Sequence> prompt = {make_sequence(fresh, 1024, 512)};
  const AttentionPlan plan = plan_of(prompt, {}, 1);
  CHECK(plan.items.size() == 8);
  CHECK(segments_read(plan) == 8);
  CHECK(plan.split_rows.empty());
  CHECK(segments_read(plan_of(prompt, {}, 256)) == 4 * 2 + 4 * 2);
  PlanOptions options;
  options.wanted_items = 4;
  CHECK(plan_of(one, options, 512).items.size() == 2);  // of the segments that are left
}

TEST_CASE("Blocks that meet again behind a difference are shared there too") {
  FreshBlocks fresh;
  Sequence a = make_sequence(fresh, 1023, 1), b = a;
  b.blocks[3] = 99999;  // in the first of four segments
  const AttentionPlan plan = plan_of({a, b});
  check_coverage({a, b}, plan);
  check_states(plan);
  CHECK(segments_read(plan) == 1 + 1 + 3);
}

TEST_CASE("Samples of one prompt read it once") {
  FreshBlocks fresh;
  std::vector<Sequence> samples = {make_sequence(fresh, 1100, 1)};
  for (std::uint32_t i = 1; i < 16; ++i) {
    samples.push_back(make_sequence(fresh, 1100 + i, 1, &samples[0], 1090 / kBlockTokens));
  }
  const AttentionPlan plan = plan_of(samples);
  check_coverage(samples, plan);
  check_states(plan);
  CHECK(plan.items.size() == 1 + 16);
  CHECK(segments_read(plan) == 4 + 16);
  CHECK(plan.items[0].row_count == 16);  // the largest first
  CHECK(plan.split_rows.size() == 16);
}

TEST_CASE("A tree of prompts is shared level by level") {
  FreshBlocks fresh;
  std::vector<Sequence> users;
  for (int group = 0; group < 2; ++group) {
    for (int user = 0; user < 3; ++user) {
      // All share two segments; the users of a group share a third.
      const Sequence* parent = users.empty() ? nullptr : &users[user == 0 ? 0 : users.size() - 1];
      users.push_back(make_sequence(fresh, 1000, 2, parent, user == 0 ? 32 : 48));
    }
  }
  const AttentionPlan plan = plan_of(users);
  check_coverage(users, plan);
  check_states(plan);
  CHECK(segments_read(plan) == 2 + 2 * 1 + 6);
}

TEST_CASE("A sequence with many rows keeps its own items") {
  FreshBlocks fresh;
  std::vector<Sequence> batch = {make_sequence(fresh, 512, 64)};
  batch.push_back(make_sequence(fresh, 700, 1, &batch[0], 32));
  batch.push_back(make_sequence(fresh, 701, 1, &batch[0], 32));
  const AttentionPlan plan = plan_of(batch);
  check_coverage(batch, plan);
  CHECK(segments_read(plan) == 3 + 2 + 2);
  CHECK(plan.split_rows.size() == 2);
}

TEST_CASE("A long prompt is cut by rows, and a row ends where it sees no more") {
  FreshBlocks fresh;
  const std::vector<Sequence> batch = {make_sequence(fresh, 0, 512)};
  const AttentionPlan plan = plan_of(batch);
  check_coverage(batch, plan);
  CHECK(plan.items.size() == 8);
  CHECK(plan.split_rows.empty());
  CHECK(segments_read(plan) == 4 * 1 + 4 * 2);
}

TEST_CASE("Work is cut where there is too little for the threads") {
  FreshBlocks fresh;
  PlanOptions options;
  options.wanted_items = 4;
  SECTION("one row, by segments") {
    const std::vector<Sequence> batch = {make_sequence(fresh, 4095, 1)};
    const AttentionPlan plan = plan_of(batch, options);
    check_coverage(batch, plan);
    check_states(plan);
    CHECK(plan.items.size() == 4);
    CHECK(plan.split_rows.size() == 1);
    CHECK(plan.states == 16);
  }
  SECTION("some rows, by rows first because that needs no merge") {
    const std::vector<Sequence> batch = {make_sequence(fresh, 4000, 64)};
    const AttentionPlan plan = plan_of(batch, options);
    check_coverage(batch, plan);
    CHECK(plan.items.size() == 4);
    CHECK(plan.split_rows.empty());
  }
  SECTION("not into fewer rows than are worth an item") {
    const std::vector<Sequence> batch = {make_sequence(fresh, 4000, 31)};
    const AttentionPlan segments = plan_of(batch, options);
    check_coverage(batch, segments);
    CHECK(segments.items.size() == 4);
    CHECK(segments.split_rows.size() == 31);
    options.least_item_rows = 7;
    const AttentionPlan rows = plan_of(batch, options);
    check_coverage(batch, rows);
    CHECK(rows.items.size() == 4);
    CHECK(rows.split_rows.empty());
  }
  SECTION("nothing to cut") {
    const std::vector<Sequence> batch = {make_sequence(fresh, 0, 1)};
    CHECK(plan_of(batch, options).items.size() == 1);
  }
  SECTION("enough as it is") {
    std::vector<Sequence> batch;
    for (int i = 0; i < 8; ++i) batch.push_back(make_sequence(fresh, 2047, 1));
    CHECK(plan_of(batch, options).items.size() == 8);
  }
}

TEST_CASE("An empty batch has an empty plan") {
  const AttentionPlan plan = plan_attention({}, {});
  CHECK(plan.items.empty());
  CHECK(plan.positions.empty());
  CHECK(plan.states == 0);
}

TEST_CASE("Broken promises of the caller are caught") {
  FreshBlocks fresh;
  const Sequence good = make_sequence(fresh, 15, 2);
  REQUIRE(good.blocks.size() == 2);
  Sequence short_table = good, no_rows = good;
  short_table.blocks.pop_back();
  no_rows.rows = 0;
  CHECK_NOTHROW(plan_of({good}));
  CHECK_THROWS_AS(plan_of({short_table}), Error);
  CHECK_THROWS_AS(plan_of({no_rows}), Error);
  PlanOptions odd;
  odd.segment_tokens = 24;
  CHECK_THROWS_AS(plan_of({good}, odd), Error);
}

}  // namespace
}  // namespace incipit::device
