// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_FAKE_STORE_H_
#define INCIPIT_TESTS_STORE_FAKE_STORE_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "incipit/store.h"

namespace incipit::test {

/// A key whose bytes follow from `number`, spread like a digest's.
inline StoreKey store_key(std::uint64_t number) {
  StoreKey key;
  std::uint64_t state = number;
  for (std::byte& byte : key.bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return key;
}

/// What a FaultyStore does wrong. "every n": the n-th, 2n-th, ... call of that kind; 0: never.
struct StoreFaults {
  bool down = false;                   // every call is kUnavailable, at once
  bool hang = false;                   // every call is kUnavailable, at its deadline
  bool ignore_deadline = false;        // sleeps longer than the deadline where told to sleep
  std::chrono::microseconds delay{};   // of each call
  std::uint64_t bytes_per_second = 0;  // all calls share this bandwidth; 0: no limit

  unsigned fail_every = 0;   // any call: kUnavailable
  unsigned throw_every = 0;  // any call: throws std::runtime_error

  unsigned lose_every = 0;  // put: kOk, but nothing is stored

  unsigned drop_every = 0;      // get: kMiss
  unsigned corrupt_every = 0;   // get: one bit is wrong, another one each time
  unsigned truncate_every = 0;  // get: cut somewhere, another place each time
  unsigned extend_every = 0;    // get: bytes behind the end
  unsigned swap_every = 0;      // get: the value of another key, where there is one
};

/// A store in memory that misbehaves as told: `set()` at any time, from any thread.
///
/// Tests may look at and change what it holds: values(), set_value(), clear(). calls() counts all
/// calls, gets(), puts() and erases() those of a kind. Times to live are ignored. Thread-safe.
class FaultyStore final : public Store {
 public:
  explicit FaultyStore(StoreFaults faults = {}) : faults_(faults) {}

  void set(StoreFaults faults) {
    const std::lock_guard lock(mutex_);
    faults_ = faults;
  }

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    Value copy;
    {
      std::unique_lock lock(mutex_);
      const std::uint64_t n = ++gets_;
      const auto found = values_.find(key.bytes);
      const std::size_t size = found == values_.end() ? 0 : found->second.size();
      if (!passes(lock, deadline, size)) return StoreStatus::kUnavailable;
      const auto again = values_.find(key.bytes);
      if (again == values_.end() || nth(n, faults_.drop_every)) return StoreStatus::kMiss;
      copy = nth(n, faults_.swap_every) ? other_than(again) : again->second;
      damage(copy, n);
    }
    std::ranges::copy(copy, value.resize(copy.size()).begin());
    return StoreStatus::kOk;
  }

  StoreStatus put(const StoreKey& key, std::span<const std::byte> value, std::chrono::seconds,
                  Deadline deadline) override {
    std::unique_lock lock(mutex_);
    const std::uint64_t n = ++puts_;
    if (!passes(lock, deadline, value.size())) return StoreStatus::kUnavailable;
    if (!nth(n, faults_.lose_every)) values_[key.bytes].assign(value.begin(), value.end());
    return StoreStatus::kOk;
  }

  StoreStatus erase(const StoreKey& key, Deadline deadline) override {
    std::unique_lock lock(mutex_);
    ++erases_;
    if (!passes(lock, deadline, 0)) return StoreStatus::kUnavailable;
    values_.erase(key.bytes);
    return StoreStatus::kOk;
  }

  std::string_view name() const noexcept override { return "faulty"; }
  std::uint64_t size_bytes() const noexcept override {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (const auto& [key, value] : values_) bytes += value.size();
    return bytes;
  }

  using Value = std::vector<std::byte>;
  using Values = std::map<std::array<std::byte, 32>, Value>;

  Values values() const {
    const std::lock_guard lock(mutex_);
    return values_;
  }
  void set_value(const StoreKey& key, Value value) {
    const std::lock_guard lock(mutex_);
    values_[key.bytes] = std::move(value);
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    values_.clear();
  }

  std::uint64_t calls() const { return gets() + puts() + erases(); }
  std::uint64_t gets() const { return count(gets_); }
  std::uint64_t puts() const { return count(puts_); }
  std::uint64_t erases() const { return count(erases_); }

 private:
  using Clock = std::chrono::steady_clock;

  static bool nth(std::uint64_t n, unsigned every) { return every != 0 && n % every == 0; }

  std::uint64_t count(const std::uint64_t& counter) const {
    const std::lock_guard lock(mutex_);
    return counter;
  }

  // Waits as long as the call takes, without the lock. False: kUnavailable.
  bool passes(std::unique_lock<std::mutex>& lock, Deadline deadline, std::size_t bytes) {
    const std::uint64_t n = ++any_;
    if (nth(n, faults_.throw_every)) throw std::runtime_error("a store's own exception");
    if (faults_.down || nth(n, faults_.fail_every)) return false;
    Clock::time_point done = Clock::now() + faults_.delay;
    if (faults_.bytes_per_second != 0) {
      const auto seconds =
          static_cast<double>(bytes) / static_cast<double>(faults_.bytes_per_second);
      link_free_ = std::max(link_free_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(
                                                            std::chrono::duration<double>(seconds));
      if (!faults_.ignore_deadline) link_free_ = std::min(link_free_, deadline);
      done = std::max(done, link_free_);
    }
    const bool late = faults_.hang || (done >= deadline && !faults_.ignore_deadline);
    if (late) done = deadline;
    lock.unlock();
    std::this_thread::sleep_until(done);
    lock.lock();
    return !late;
  }

  Value other_than(Values::const_iterator here) const {
    const auto next = std::next(here);
    return next == values_.end() ? values_.begin()->second : next->second;
  }

  void damage(Value& value, std::uint64_t n) const {
    if (nth(n, faults_.corrupt_every) && !value.empty()) {
      const std::size_t bit = n * 7919 % (value.size() * 8);
      value[bit / 8] ^= std::byte{1} << bit % 8;
    }
    if (nth(n, faults_.truncate_every) && !value.empty()) value.resize(n * 7919 % value.size());
    if (nth(n, faults_.extend_every)) value.insert(value.end(), 1 + n % 40, std::byte{0x5A});
  }

  mutable std::mutex mutex_;  // of all below
  StoreFaults faults_;
  Values values_;
  std::uint64_t any_ = 0, gets_ = 0, puts_ = 0, erases_ = 0;
  Clock::time_point link_free_ = {};
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_FAKE_STORE_H_
