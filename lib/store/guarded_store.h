// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_GUARDED_STORE_H_
#define INCIPIT_STORE_GUARDED_STORE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "incipit/store.h"
#include "store/circuit_breaker.h"
#include "store/clock.h"
#include "store/miss_memory.h"

namespace incipit::store {

struct GuardOptions {
  std::chrono::milliseconds get_deadline{500};  // of get() and erase()
  std::chrono::milliseconds put_deadline{2000};
  BreakerOptions breaker = {};
  std::chrono::milliseconds miss_lifetime{1000};  // how long a missing key is not asked for again
  std::size_t misses_remembered = 4096;           // 48 bytes each; 0: none
  SteadyClock clock = {};
};

/// A snapshot; all but the last count from the guard's construction.
struct StoreCounters {
  std::uint64_t gets = 0;  // = hits + misses + too large + failed + rejected ones
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;             // remembered ones too
  std::uint64_t misses_remembered = 0;  // of them, those that the store was not asked about
  std::uint64_t puts = 0;
  std::uint64_t erases = 0;
  std::uint64_t failures = 0;             // calls that were kUnavailable, threw, or came too late
  std::uint64_t rejected_by_breaker = 0;  // calls that did not touch the store
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t get_microseconds = 0;  // in the store, of all gets and of all puts
  std::uint64_t put_microseconds = 0;
  bool breaker_open = false;
};

/// What stands between the cache and any Store, the host's own too: deadlines, a fence for
/// exceptions, a circuit breaker, a memory of recent misses, counters, and the estimates that the
/// cost model lives on.
///
/// Thread-safe. No lock is held while the store works.
class GuardedStore {
 public:
  using Deadline = Store::Deadline;

  /// `store` is not null.
  explicit GuardedStore(std::shared_ptr<Store> store, GuardOptions options = {});
  GuardedStore(const GuardedStore&) = delete;
  GuardedStore& operator=(const GuardedStore&) = delete;

  /// As Store's. The store's deadline is the option's, but not later than `not_later_than`.
  StoreStatus get(const StoreKey& key, StoreBuffer& value,
                  Deadline not_later_than = Deadline::max()) noexcept;
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value,
                  std::chrono::seconds time_to_live,
                  Deadline not_later_than = Deadline::max()) noexcept;
  StoreStatus erase(const StoreKey& key, Deadline not_later_than = Deadline::max()) noexcept;

  std::string_view name() const noexcept { return store_->name(); }
  std::uint64_t size_bytes() const noexcept { return store_->size_bytes(); }

  StoreCounters counters() const;

  /// What a hit costs before its first byte: a moving average over small values. None before one
  /// was read.
  std::optional<double> latency_seconds() const;
  /// How fast a large value comes once it comes: a moving average. None before one was read. Where
  /// no latency is known, the latency is part of it.
  std::optional<double> bytes_per_second() const;

  /// Goes up whenever the breaker opens: what was known to be stored may be gone then.
  std::uint64_t generation() const;

 private:
  template <class Call>
  StoreStatus guarded(Call call, std::chrono::milliseconds limit, Deadline not_later_than,
                      std::uint64_t StoreCounters::*microseconds) noexcept;
  void learn(std::size_t bytes, double seconds);

  const std::shared_ptr<Store> store_;
  const GuardOptions options_;

  mutable std::mutex mutex_;  // of all below
  CircuitBreaker breaker_;
  MissMemory misses_;
  StoreCounters counters_;
  std::optional<double> latency_;           // seconds
  std::optional<double> seconds_per_byte_;  // behind the latency
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_GUARDED_STORE_H_
