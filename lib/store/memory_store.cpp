// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/check.h"

namespace incipit::store {

MemoryStore::MemoryStore(std::uint64_t capacity_bytes, SteadyClock clock)
    : capacity_(capacity_bytes), clock_(std::move(clock)) {
  if (capacity_ == 0) {
    base::throw_error(ErrorCode::kInvalidArgument, "a memory store needs a capacity");
  }
}

StoreStatus MemoryStore::get(const StoreKey& key, Deadline, StoreBuffer& value) {
  Value found;
  {
    const std::lock_guard lock(mutex_);
    const auto at = by_key_.find(key);
    if (at == by_key_.end()) return StoreStatus::kMiss;
    if (now(clock_) >= at->second->expires) {
      remove(at->second);
      return StoreStatus::kMiss;
    }
    entries_.splice(entries_.begin(), entries_, at->second);
    found = at->second->value;
  }
  try {
    std::ranges::copy(*found, value.resize(found->size()).begin());
  } catch (const std::bad_alloc&) {
    return StoreStatus::kUnavailable;
  }
  return StoreStatus::kOk;
}

StoreStatus MemoryStore::put(const StoreKey& key, std::span<const std::byte> value,
                             std::chrono::seconds time_to_live, Deadline deadline) {
  if (value.size() > capacity_ || value.size() + kOverhead > capacity_) {
    return StoreStatus::kTooLarge;
  }
  if (time_to_live < std::chrono::seconds(0)) return erase(key, deadline);  // expired already
  const Time start = now(clock_);
  const auto longest = std::chrono::duration_cast<std::chrono::seconds>(Time::max() - start);
  const Time expires = time_to_live == std::chrono::seconds(0) || time_to_live >= longest
                           ? Time::max()
                           : start + time_to_live;
  try {
    Entries entry;
    entry.push_back(
        {key, std::make_shared<const std::vector<std::byte>>(value.begin(), value.end()), expires});
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = by_key_.try_emplace(key, entry.begin());
    if (!is_new) {
      bytes_ -= charge(*at->second);
      entries_.erase(std::exchange(at->second, entry.begin()));
    }
    bytes_ += charge(entry.front());
    entries_.splice(entries_.begin(), entry);
    // The new one is the last to go, and it fits alone.
    while (bytes_ > capacity_) remove(std::prev(entries_.end()));
  } catch (const std::bad_alloc&) {
    return StoreStatus::kUnavailable;
  }
  return StoreStatus::kOk;
}

StoreStatus MemoryStore::erase(const StoreKey& key, Deadline) {
  const std::lock_guard lock(mutex_);
  if (const auto at = by_key_.find(key); at != by_key_.end()) remove(at->second);
  return StoreStatus::kOk;
}

std::uint64_t MemoryStore::size_bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void MemoryStore::remove(Entries::iterator entry) {
  bytes_ -= charge(*entry);
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

}  // namespace incipit::store

namespace incipit::inline v0 {

std::shared_ptr<Store> make_memory_store(std::uint64_t capacity_bytes) {
  return std::make_shared<store::MemoryStore>(capacity_bytes);
}

}  // namespace incipit::inline v0
