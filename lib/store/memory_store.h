// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_MEMORY_STORE_H_
#define INCIPIT_STORE_MEMORY_STORE_H_

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "incipit/store.h"
#include "store/clock.h"
#include "store/key_hash.h"

namespace incipit::store {

/// make_memory_store()'s, with a clock that tests replace. Waits for nothing, so it needs no
/// deadline. Values are copied in and out without the lock.
class MemoryStore final : public Store {
 public:
  /// What a value costs beside its bytes.
  static constexpr std::uint64_t kOverhead = 256;

  explicit MemoryStore(std::uint64_t capacity_bytes, SteadyClock clock = {});

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override;
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value,
                  std::chrono::seconds time_to_live, Deadline deadline) override;
  StoreStatus erase(const StoreKey& key, Deadline deadline) override;
  std::string_view name() const noexcept override { return "memory"; }
  std::uint64_t size_bytes() const noexcept override;

 private:
  using Time = std::chrono::steady_clock::time_point;
  using Value = std::shared_ptr<const std::vector<std::byte>>;
  struct Entry {
    StoreKey key;
    Value value;
    Time expires;
  };
  using Entries = std::list<Entry>;

  static std::uint64_t charge(const Entry& entry) { return entry.value->size() + kOverhead; }
  void remove(Entries::iterator entry);

  const std::uint64_t capacity_;
  const SteadyClock clock_;

  mutable std::mutex mutex_;  // of all below
  Entries entries_;           // from the most to the least recently used
  std::unordered_map<StoreKey, Entries::iterator, KeyHash> by_key_;
  std::uint64_t bytes_ = 0;  // charges of all entries, <= capacity_
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_MEMORY_STORE_H_
