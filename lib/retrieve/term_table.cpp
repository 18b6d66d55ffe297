// SPDX-License-Identifier: Apache-2.0
#include "retrieve/term_table.h"

#include <utility>

namespace incipit::retrieve {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

std::size_t TermTable::slot_of(std::uint64_t term) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = term & mask;
  while (slots_[at].number != kNone && slots_[at].term != term) at = (at + 1) & mask;
  return at;
}

std::uint32_t TermTable::find(std::uint64_t term) const noexcept {
  return slots_.empty() ? kNone : slots_[slot_of(term)].number;
}

std::uint32_t TermTable::find_or_add(std::uint64_t term) {
  if (slots_.size() <= 2 * size_) grow();
  Slot& slot = slots_[slot_of(term)];
  if (slot.number == kNone) slot = {term, static_cast<std::uint32_t>(size_++)};
  return slot.number;
}

void TermTable::grow() {
  std::vector<Slot> larger(slots_.empty() ? kFirstSlots : 2 * slots_.size());
  const std::vector<Slot> smaller = std::exchange(slots_, std::move(larger));
  for (const Slot& slot : smaller) {
    if (slot.number != kNone) slots_[slot_of(slot.term)] = slot;
  }
}

}  // namespace incipit::retrieve
