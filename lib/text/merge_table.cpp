// SPDX-License-Identifier: Apache-2.0
#include "text/merge_table.h"

#include <bit>

namespace incipit::text {

MergeTable::MergeTable(std::size_t count, std::uint64_t seed)
    : slots_(std::bit_ceil(2 * count + 1)), seed_(seed) {}

void MergeTable::insert(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t pair = pair_of(left, right);
  slots_[slot_of(pair)] = {pair, merge};
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const noexcept {
  return slots_[slot_of(pair_of(left, right))].merge;
}

std::size_t MergeTable::slot_of(std::uint64_t pair) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = scatter(pair ^ seed_) & mask;
  while (slots_[slot].merge.rank != kNever && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  return slot;
}

}  // namespace incipit::text
