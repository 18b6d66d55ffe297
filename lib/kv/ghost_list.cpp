// SPDX-License-Identifier: Apache-2.0
#include "kv/ghost_list.h"

#include "base/check.h"

namespace incipit::kv {

GhostList::GhostList(std::size_t capacity)
    : identities_(capacity), links_(capacity), table_(capacity) {
  for (std::size_t slot = 0; slot < capacity; ++slot) {
    links_.push_newest(unused_, static_cast<Slot>(slot));
  }
}

void GhostList::push(std::uint64_t identity) {
  if (identities_.empty()) return;
  if (unused_.size == 0) drop_oldest();
  const Slot slot = unused_.newest;
  links_.remove(unused_, slot);
  links_.push_newest(known_, slot);
  identities_[slot] = identity;
  table_.insert(identity, slot);
}

bool GhostList::take(std::uint64_t identity) {
  const Slot slot =
      table_.find(identity, [&](Slot known) { return identities_[known] == identity; });
  if (slot == kNoNode) return false;
  remove(slot);
  return true;
}

void GhostList::drop_oldest() {
  INCIPIT_CHECK(known_.size > 0);
  remove(known_.oldest);
  // Lists that are full drop one after the other.
  if (known_.size > 0) prefetch(identities_[known_.oldest]);
}

void GhostList::clear() {
  while (known_.size > 0) drop_oldest();
}

void GhostList::remove(Slot slot) {
  table_.erase(identities_[slot], slot);
  links_.remove(known_, slot);
  links_.push_newest(unused_, slot);
}

}  // namespace incipit::kv
