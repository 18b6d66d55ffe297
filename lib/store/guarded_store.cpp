// SPDX-License-Identifier: Apache-2.0
#include "store/guarded_store.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace incipit::store {
namespace {

// Values up to this size take a latency; larger ones tell a bandwidth. Bytes.
constexpr std::size_t kSmallValue = 16384;
// The weight of the newest sample in a moving average.
constexpr double kNewest = 0.2;

void blend(std::optional<double>& average, double sample) {
  average = average ? *average + kNewest * (sample - *average) : sample;
}

}  // namespace

GuardedStore::GuardedStore(std::shared_ptr<Store> store, GuardOptions options)
    : store_(std::move(store)),
      options_(std::move(options)),
      breaker_(options_.breaker),
      misses_(options_.misses_remembered) {
  INCIPIT_CHECK(store_ != nullptr);
}

// Asks the breaker, makes the call with its deadline and tells the breaker and the counters how it
// went.
template <class Call>
StoreStatus GuardedStore::guarded(Call call, std::chrono::milliseconds limit,
                                  Deadline not_later_than,
                                  std::uint64_t StoreCounters::*microseconds) noexcept {
  const Deadline start = now(options_.clock);
  // Too late is nothing that the store did.
  if (not_later_than <= start) return StoreStatus::kUnavailable;
  std::optional<CircuitBreaker::Ticket> ticket;
  {
    const std::lock_guard lock(mutex_);
    ticket = breaker_.admit(start);
    if (!ticket) {
      ++counters_.rejected_by_breaker;
      return StoreStatus::kUnavailable;
    }
  }
  StoreStatus status = StoreStatus::kUnavailable;
  try {
    status = call(std::min(start + limit, not_later_than));
  } catch (...) {  // kUnavailable, as Store says
  }
  const Deadline end = now(options_.clock);
  const bool took_all = end - start >= limit;

  const std::lock_guard lock(mutex_);
  if (microseconds != nullptr) {
    counters_.*microseconds += static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(end - start).count());
  }
  if (status == StoreStatus::kUnavailable || took_all) {
    ++counters_.failures;
    breaker_.failed(*ticket, end, took_all);
  } else {
    breaker_.succeeded(*ticket);
  }
  return status;
}

StoreStatus GuardedStore::get(const StoreKey& key, StoreBuffer& value,
                              Deadline not_later_than) noexcept {
  std::uint64_t writes = 0;
  {
    const std::lock_guard lock(mutex_);
    ++counters_.gets;
    if (misses_.contains(key, now(options_.clock))) {
      ++counters_.misses;
      ++counters_.misses_remembered;
      return StoreStatus::kMiss;
    }
    writes = misses_.writes(key);
  }
  Deadline start = {};
  const StoreStatus status = guarded(
      [&](Deadline deadline) {
        start = now(options_.clock);
        return store_->get(key, deadline, value);
      },
      options_.get_deadline, not_later_than, &StoreCounters::get_microseconds);
  const Deadline end = now(options_.clock);

  const std::lock_guard lock(mutex_);
  if (status == StoreStatus::kMiss) {
    ++counters_.misses;
    misses_.remember(key, end + options_.miss_lifetime, writes);
  } else if (status == StoreStatus::kOk) {
    const std::size_t bytes = std::as_const(value).bytes().size();
    ++counters_.hits;
    counters_.bytes_read += bytes;
    learn(bytes, std::chrono::duration<double>(end - start).count());
  }
  return status;
}

void GuardedStore::learn(std::size_t bytes, double seconds) {
  if (bytes <= kSmallValue) {
    blend(latency_, seconds);
  } else {
    // A latency that was longer than this whole call is no reason for an endless bandwidth.
    const double moving = std::max(seconds - latency_.value_or(0), seconds / 16);
    blend(seconds_per_byte_, moving / static_cast<double>(bytes));
  }
}

StoreStatus GuardedStore::put(const StoreKey& key, std::span<const std::byte> value,
                              std::chrono::seconds time_to_live, Deadline not_later_than) noexcept {
  const StoreStatus status =
      guarded([&](Deadline deadline) { return store_->put(key, value, time_to_live, deadline); },
              options_.put_deadline, not_later_than, &StoreCounters::put_microseconds);
  const std::lock_guard lock(mutex_);
  ++counters_.puts;
  // Whatever came of it: a call that failed may have stored the value all the same.
  misses_.forget(key);
  if (status == StoreStatus::kOk) counters_.bytes_written += value.size();
  return status;
}

StoreStatus GuardedStore::erase(const StoreKey& key, Deadline not_later_than) noexcept {
  const StoreStatus status =
      guarded([&](Deadline deadline) { return store_->erase(key, deadline); },
              options_.get_deadline, not_later_than, nullptr);
  const std::lock_guard lock(mutex_);
  ++counters_.erases;
  return status;
}

StoreCounters GuardedStore::counters() const {
  const std::lock_guard lock(mutex_);
  StoreCounters counters = counters_;
  counters.breaker_open = breaker_.is_open();
  return counters;
}

std::optional<double> GuardedStore::latency_seconds() const {
  const std::lock_guard lock(mutex_);
  return latency_;
}

std::optional<double> GuardedStore::bytes_per_second() const {
  const std::lock_guard lock(mutex_);
  // A clock too coarse for one call has measured nothing.
  if (!seconds_per_byte_ || *seconds_per_byte_ <= 0) return std::nullopt;
  return 1 / *seconds_per_byte_;
}

std::uint64_t GuardedStore::generation() const {
  const std::lock_guard lock(mutex_);
  return breaker_.generation();
}

}  // namespace incipit::store
