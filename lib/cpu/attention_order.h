// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_ATTENTION_ORDER_H_
#define INCIPIT_CPU_ATTENTION_ORDER_H_

#include <cstdint>
#include <vector>

#include "device/attention_plan.h"

namespace incipit::cpu {

/// A piece of work for one thread: an item of a plan, and its followers, for one KV head.
struct AttentionUnit {
  std::uint32_t item = 0, kv_head = 0;
};

/// How threads take the items of a plan.
///
/// An item whose rows all come from one other item, and have no third one, follows that if it is
/// little work: who has computed the one goes on with the other, and the states stay at hand. So
/// samples of one prompt leave no partial states: what each has of its own follows what all share.
class AttentionOrder {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// Items of more than `most_rows` rows get no followers. O(rows of all items), and for each item
  /// that might follow one the rows of that.
  void make(const device::AttentionPlan& plan, std::uint32_t kv_heads, std::uint32_t most_rows);

  /// In the order in which they are worth computing: the largest first, and those of the same K and
  /// V next to each other, so that threads side by side read them from memory once.
  const std::vector<AttentionUnit>& units() const noexcept { return units_; }
  /// The next item of the unit that has this one, or kNone.
  std::uint32_t next(std::uint32_t item) const noexcept { return next_[item]; }
  /// Whether an item is computed behind another one.
  bool follows(std::uint32_t item) const noexcept { return follows_[item]; }
  /// Whether one unit has all of the row, in an item and one that follows it. The rows of a
  /// follower lie next to each other in the leader's.
  bool is_joined(std::uint32_t row) const noexcept { return joined_[row]; }

 private:
  std::uint32_t leader_of(const device::AttentionPlan& plan, const device::AttentionItem& item,
                          std::uint32_t most_rows) const noexcept;

  std::vector<AttentionUnit> units_;
  std::vector<std::uint32_t> next_, last_;  // [items] and of an item the last that follows it
  std::vector<bool> follows_;               // [items]
  std::vector<bool> joined_;                // [rows]
  std::vector<std::uint32_t> first_item_;   // [rows] that folds states, or kNone
};

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_ATTENTION_ORDER_H_
