// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_MISS_MEMORY_H_
#define INCIPIT_STORE_MISS_MEMORY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "incipit/store.h"
#include "store/key_hash.h"

namespace incipit::store {

/// The keys that a store lately did not have. A table of fixed size in which a key's slot follows
/// from the key, so a newer key may push an older one out. Not thread-safe.
class MissMemory {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `slots` may be 0: remembers nothing then.
  explicit MissMemory(std::size_t slots) : slots_(slots) {}

  bool contains(const StoreKey& key, Time now) const noexcept {
    return !slots_.empty() && slots_[index(key)].key == key && now < slots_[index(key)].until;
  }
  /// To be asked before the store is: see remember().
  std::uint64_t writes(const StoreKey& key) const noexcept {
    return slots_.empty() ? 0 : slots_[index(key)].writes;
  }
  /// Does nothing where a key of this slot was written since writes() was asked: the store may have
  /// answered before that.
  void remember(const StoreKey& key, Time until, std::uint64_t writes_before) noexcept {
    if (slots_.empty() || slots_[index(key)].writes != writes_before) return;
    slots_[index(key)].key = key;
    slots_[index(key)].until = until;
  }
  /// The key was written.
  void forget(const StoreKey& key) noexcept {
    if (slots_.empty()) return;
    ++slots_[index(key)].writes;
    if (slots_[index(key)].key == key) slots_[index(key)].until = {};
  }

 private:
  struct Slot {
    StoreKey key = {};
    Time until = {};
    std::uint64_t writes = 0;
  };

  std::size_t index(const StoreKey& key) const noexcept { return KeyHash{}(key) % slots_.size(); }

  std::vector<Slot> slots_;
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_MISS_MEMORY_H_
