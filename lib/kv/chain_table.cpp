// SPDX-License-Identifier: Apache-2.0
#include "kv/chain_table.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace incipit::kv {

ChainTable::ChainTable(std::size_t capacity)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * capacity, 2))), mask_(slots_.size() - 1) {}

void ChainTable::insert(std::uint64_t hash, NodeId node) {
  INCIPIT_CHECK(size_ < slots_.size() / 2);
  const std::uint32_t tag = tag_of(hash);
  std::size_t at = tag & mask_;
  while (slots_[at].node != kNoNode) at = next(at);
  slots_[at] = {tag, node};
  ++size_;
}

void ChainTable::erase(std::uint64_t hash, NodeId node) {
  std::size_t hole = tag_of(hash) & mask_;
  while (slots_[hole].node != node) {
    INCIPIT_CHECK(slots_[hole].node != kNoNode);
    hole = next(hole);
  }
  // Moves up each later slot of the run whose home is not past the hole.
  for (std::size_t at = next(hole); slots_[at].node != kNoNode; at = next(at)) {
    const std::size_t home = slots_[at].tag & mask_;
    if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
    slots_[hole] = slots_[at];
    hole = at;
  }
  slots_[hole] = {};
  --size_;
}

void ChainTable::clear() noexcept {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  size_ = 0;
}

void ChainTable::check_integrity() const {
  std::size_t used = 0;
  for (std::size_t at = 0; at < slots_.size(); ++at) {
    if (slots_[at].node == kNoNode) continue;
    ++used;
    std::size_t reached = slots_[at].tag & mask_;
    while (reached != at && slots_[reached].node != kNoNode) reached = next(reached);
    INCIPIT_CHECK(reached == at);
  }
  INCIPIT_CHECK(used == size_);
}

}  // namespace incipit::kv
