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
    if (key == kNoKey) return has_no_key_ ? &of_no_key_ : nullptr;
    const Part& part = parts_[part_of(key)];
    if (part.slots.empty()) return nullptr;
    const Slot& slot = part.slots[slot_of(part.slots, key)];
    return slot.key == key ? &slot.value : nullptr;
  }

  /// Has the cache fetch what find() and find_or_add() will look at.
  void prefetch(std::uint64_t key) const noexcept {
    const Part& part = parts_[part_of(key)];
    if (!part.slots.empty()) __builtin_prefetch(&part.slots[key & (part.slots.size() - 1)]);
  }

  /// Its value, a new one where there was none. Good until the next call.
  Value& find_or_add(std::uint64_t key) {
    if (key == kNoKey) {
      size_ += has_no_key_ ? 0 : 1;
      has_no_key_ = true;
      return of_no_key_;
    }
    Part& part = parts_[part_of(key)];
    if (part.slots.size() <= 2 * part.used) grow(part);
    Slot& slot = part.slots[slot_of(part.slots, key)];
    if (slot.key == kNoKey) {
      slot.key = key;
      ++part.used;
      ++size_;
    }
    return slot.value;
  }

  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr unsigned kPartBits = 8;
  static constexpr std::size_t kFirstSlots = 8;
  static constexpr std::size_t kFewSlots = 64;  // up to so many grow fourfold
  static constexpr std::uint64_t kNoKey = 0;    // of a free slot; its value has a place of its own

  struct Slot {
    std::uint64_t key = kNoKey;
    Value value = {};
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
    while (slots[at].key != key && slots[at].key != kNoKey) at = (at + 1) & mask;
    return at;
  }

  static void grow(Part& part) {
    const std::size_t now = part.slots.size();
    std::vector<Slot> larger(now == 0 ? kFirstSlots : now < kFewSlots ? 4 * now : 2 * now);
    for (Slot& slot : part.slots) {
      if (slot.key != kNoKey) larger[slot_of(larger, slot.key)] = std::move(slot);
    }
    part.slots = std::move(larger);
  }

  std::array<Part, std::size_t{1} << kPartBits> parts_ = {};
  Value of_no_key_ = {};
  bool has_no_key_ = false;
  std::size_t size_ = 0;
};

}  // namespace incipit::retrieve

#endif  // INCIPIT_RETRIEVE_HASH_TABLE_H_
