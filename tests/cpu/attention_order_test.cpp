// SPDX-License-Identifier: Apache-2.0
#include "cpu/attention_order.h"

#include <cstdint>
#include <vector>

#include "device/attention_plan.h"
#include "support/catch.h"

namespace incipit::cpu {
namespace {

using device::BlockId;
using device::SequenceRows;

constexpr std::uint32_t kKvHeads = 3, kMostRows = 64;

struct Sequence {
  std::vector<BlockId> blocks = {};
  std::uint32_t position = 0, rows = 1;
};

/// `position` tokens before its first row, the first `shared` blocks being those of everybody.
Sequence make_sequence(std::uint32_t id, std::uint32_t position, std::uint32_t shared,
                       std::uint32_t rows = 1) {
  Sequence sequence{{}, position, rows};
  for (BlockId block = 0; block * device::kBlockTokens < position + rows; ++block) {
    sequence.blocks.push_back(block < shared ? block : 1000 * id + block);
  }
  return sequence;
}

struct Planned {
  device::AttentionPlan plan = {};
  AttentionOrder order = {};
};

Planned order_of(const std::vector<Sequence>& sequences, std::uint32_t wanted_items = 1,
                 std::uint32_t most_rows = kMostRows) {
  std::vector<SequenceRows> batch;
  for (const Sequence& s : sequences) batch.push_back({s.blocks, s.position, s.rows});
  device::PlanOptions options;
  options.wanted_items = wanted_items;
  options.least_item_rows = 8;
  Planned planned;
  planned.plan = device::plan_attention(batch, options);
  planned.order.make(planned.plan, kKvHeads, most_rows);
  return planned;
}

/// Each item belongs to one unit of each head; returns how many items follow others.
std::size_t check_order(const Planned& planned) {
  const AttentionOrder& order = planned.order;
  std::vector<int> met(planned.plan.items.size() * kKvHeads);
  for (const AttentionUnit& unit : order.units()) {
    CHECK_FALSE(order.follows(unit.item));
    for (std::uint32_t i = unit.item; i != AttentionOrder::kNone; i = order.next(i)) {
      ++met[i * kKvHeads + unit.kv_head];
    }
  }
  CHECK(met == std::vector<int>(met.size(), 1));
  std::size_t followers = 0;
  std::vector<bool> joined(planned.plan.positions.size());
  for (std::uint32_t i = 0; i < planned.plan.items.size(); ++i) {
    const device::AttentionItem& item = planned.plan.items[i];
    if (!order.follows(i)) continue;
    ++followers;
    for (std::uint32_t row = 0; row < item.row_count; ++row) {
      joined[planned.plan.rows[item.first_row + row]] = true;
    }
  }
  for (std::uint32_t row = 0; row < joined.size(); ++row) {
    CHECK(order.is_joined(row) == joined[row]);
  }
  return followers;
}

std::vector<Sequence> samples(std::uint32_t count, std::uint32_t position, std::uint32_t shared) {
  std::vector<Sequence> all;
  for (std::uint32_t i = 1; i <= count; ++i) all.push_back(make_sequence(i, position, shared));
  return all;
}

TEST_CASE("What samples have of their own follows what they share") {
  const Planned one = order_of(samples(16, 4100, 256));
  CHECK(one.plan.items.size() == 17);
  CHECK(check_order(one) == 16);
  CHECK(one.order.units().size() == kKvHeads);
}

TEST_CASE("Parts of the rows have followers of their own and lie next to each other") {
  const Planned two = order_of(samples(16, 4100, 256), 2);
  CHECK(check_order(two) == 16);
  const std::vector<AttentionUnit>& units = two.order.units();
  REQUIRE(units.size() == 2 * kKvHeads);
  for (std::uint32_t i = 0; i < units.size(); ++i) CHECK(units[i].kv_head == i / 2);
}

TEST_CASE("Work that threads would miss does not follow") {
  SECTION("a sequence alone, cut by segments") {
    const Planned planned = order_of({make_sequence(1, 4100, 0)}, 2);
    CHECK(planned.plan.items.size() == 2);
    CHECK(check_order(planned) == 0);
  }
  SECTION("few rows") { CHECK(check_order(order_of(samples(3, 4100, 256))) == 0); }
  SECTION("long texts of their own") {
    CHECK(check_order(order_of(samples(8, 4096 + 2 * 256, 256))) == 0);
    CHECK(check_order(order_of(samples(8, 4096 + 2 * 256 - 1, 256))) == 8);
  }
  SECTION("more rows than a pass has") {
    CHECK(check_order(order_of(samples(16, 4100, 256), 1, 15)) == 0);
    CHECK(check_order(order_of(samples(16, 4100, 256), 1, 16)) == 16);
  }
}

TEST_CASE("Rows that have a third item do not follow, and those beside them may") {
  std::vector<Sequence> batch = samples(8, 4100, 256);
  // Two of them share one more segment, and go on apart.
  batch.push_back(make_sequence(9, 4096 + 300, 256));
  batch.push_back(make_sequence(10, 4096 + 300, 256));
  for (std::size_t i = 256; i < 272; ++i) batch[9].blocks[i] = batch[8].blocks[i];
  CHECK(check_order(order_of(batch)) == 8);
}

TEST_CASE("Rows that do not lie next to each other in the leader do not follow it") {
  // Rows of one table around another: they share a whole last segment.
  const Sequence a = make_sequence(1, 767, 32);
  Sequence again = a;
  again.position = 764;
  const Sequence other = make_sequence(2, 600, 32), third = make_sequence(3, 600, 32);
  CHECK(check_order(order_of({a, other, again, third})) == 2);
  CHECK(check_order(order_of({a, again, other, third})) == 3);
}

TEST_CASE("An order may be made again, and of nothing") {
  Planned planned = order_of(samples(16, 4100, 256));
  planned.plan = {};
  planned.order.make(planned.plan, kKvHeads, kMostRows);
  CHECK(planned.order.units().empty());
  planned.plan = order_of({make_sequence(1, 0, 0, 100)}).plan;
  planned.order.make(planned.plan, kKvHeads, kMostRows);
  CHECK(check_order(planned) == 0);
  CHECK(planned.order.units().size() == 2 * kKvHeads);
}

}  // namespace
}  // namespace incipit::cpu
