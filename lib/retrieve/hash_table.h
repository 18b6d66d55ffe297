// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_RETRIEVE_HASH_TABLE_H_
#define INCIPIT_RETRIEVE_HASH_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace incipit::retrieve {

/// A map from hashes that are spread well. Open addressing with linear probing, in many parts that
/// grow by themselves: no insertion has to move more than one of them, so that none takes long,
/// however much the table holds.
template <class Value>
class HashTable {
 public:
  /// Null where the key was never added. Good until the next find_or_add().
  const Value* find(std::uint64_t key) const noexcept {
    const Part& part = parts_[part_of(key)];
    if (part.slots.empty()) return nullptr;
    const Slot& slot = part.slots[slot_of(part.slots, key)];
    return slot.used ? &slot.value : nullptr;
  }

  /// Its value, a new one where there was none. Good until the next call.
  Value& find_or_add(std::uint64_t key) {
    Part& part = parts_[part_of(key)];
    if (part.slots.size() <= 2 * part.used) grow(part);
    Slot& slot = part.slots[slot_of(part.slots, key)];
    if (!slot.used) {
      slot.key = key;
      slot.used = true;
      ++part.used;
      ++size_;
    }
    return slot.value;
  }

  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr unsigned kPartBits = 8;
  static constexpr std::size_t kFirstSlots = 8;

  struct Slot {
    std::uint64_t key = 0;
    Value value = {};
    bool used = false;
  };
  struct Part {
    std::vector<Slot> slots = {};  // a power of two of them, at most half of them used
    std::size_t used = 0;
  };

  // The high bits say which part, the low ones where in it.
  static std::size_t part_of(std::uint64_t key) noexcept { return key >> (64 - kPartBits); }

  static std::size_t slot_of(const std::vector<Slot>& slots, std::uint64_t key) noexcept {
    const std::size_t mask = slots.size() - 1;
    std::size_t at = key & mask;
    while (slots[at].used && slots[at].key != key) at = (at + 1) & mask;
    return at;
  }

  static void grow(Part& part) {
    std::vector<Slot> larger(part.slots.empty() ? kFirstSlots : 2 * part.slots.size());
    for (Slot& slot : part.slots) {
      if (slot.used) larger[slot_of(larger, slot.key)] = std::move(slot);
    }
    part.slots = std::move(larger);
  }

  std::array<Part, std::size_t{1} << kPartBits> parts_ = {};
  std::size_t size_ = 0;
};

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_HASH_TABLE_H_
