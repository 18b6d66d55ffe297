// SPDX-License-Identifier: Apache-2.0
#include "cpu/attention_order.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace incipit::cpu {
namespace {

using device::AttentionItem;
using device::AttentionPlan;

std::span<const std::uint32_t> rows_of(const AttentionPlan& plan, const AttentionItem& item) {
  return std::span(plan.rows).subspan(item.first_row, item.row_count);
}

/// Only little work of many rows: more would be missed by the other threads.
bool may_follow(const AttentionItem& item, const AttentionItem& leader) {
  constexpr std::uint32_t kLeastRows = 4, kLongerLeader = 8;
  const auto segments = [](const AttentionItem& i) { return i.segment_end - i.segment_begin; };
  return leader.row_count >= kLeastRows && item.row_count < leader.row_count &&
         segments(item) <= (segments(leader) + kLongerLeader - 1) / kLongerLeader;
}

/// Whether `some` lie next to each other in `all`, in the same order.
bool has_run(std::span<const std::uint32_t> all, std::span<const std::uint32_t> some) {
  return std::search(all.begin(), all.end(), some.begin(), some.end()) != all.end();
}

}  // namespace

void AttentionOrder::make(const AttentionPlan& plan, std::uint32_t kv_heads,
                          std::uint32_t most_rows) {
  const auto items = static_cast<std::uint32_t>(plan.items.size());
  next_.assign(items, kNone);
  follows_.assign(items, false);
  joined_.assign(plan.positions.size(), false);
  first_item_.assign(plan.positions.size(), kNone);
  last_.resize(items);
  std::iota(last_.begin(), last_.end(), 0u);
  for (std::uint32_t i = 0; i < items; ++i) {
    if (!plan.items[i].first) continue;
    for (const std::uint32_t row : rows_of(plan, plan.items[i])) first_item_[row] = i;
  }
  for (std::uint32_t i = 0; i < items; ++i) {
    const std::uint32_t leader = leader_of(plan, plan.items[i], most_rows);
    if (leader == kNone) continue;
    next_[last_[leader]] = i;
    last_[leader] = i;
    follows_[i] = true;
    for (const std::uint32_t row : rows_of(plan, plan.items[i])) joined_[row] = true;
  }

  units_.clear();
  for (std::uint32_t begin = 0, end = 0; begin < items; begin = end) {
    const std::uint32_t blocks = plan.items[begin].first_block;
    while (end < items && plan.items[end].first_block == blocks) ++end;
    for (std::uint32_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
      for (std::uint32_t item = begin; item < end; ++item) {
        if (!follows_[item]) units_.push_back({item, kv_head});
      }
    }
  }
}

/// The item that this one may follow, or kNone.
std::uint32_t AttentionOrder::leader_of(const AttentionPlan& plan, const AttentionItem& item,
                                        std::uint32_t most_rows) const noexcept {
  if (item.first || item.row_count == 0) return kNone;
  const std::span<const std::uint32_t> rows = rows_of(plan, item);
  const std::uint32_t leader = first_item_[rows.front()];
  if (leader == kNone || !may_follow(item, plan.items[leader])) return kNone;
  const std::span<const std::uint32_t> all = rows_of(plan, plan.items[leader]);
  if (all.size() > most_rows || !has_run(all, rows)) return kNone;
  for (const std::uint32_t row : rows) {
    const std::uint32_t split = plan.split_index[row];
    if (split == AttentionPlan::kWhole || plan.split_rows[split].items != 2) return kNone;
  }
  return leader;
}

}  // namespace incipit::cpu
