// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_EVENT_LOG_H_
#define INCIPIT_KV_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "incipit/cache_reports.h"

namespace incipit::kv {

/// The last events of a cache, for readers who follow it.
///
/// Memory is fixed at construction; pushing never fails. Not thread-safe.
class EventLog {
 public:
  /// Keeps the last `capacity` events; 0: counts them only.
  explicit EventLog(std::size_t capacity) : ring_(capacity) {}

  /// Gives the event its number.
  void push(CacheEvent event) noexcept;
  /// The number of the next event.
  std::uint64_t next() const noexcept { return next_; }

  using Batch = CacheEvents;
  /// At most `limit` events from number `from` on.
  Batch read(std::uint64_t from, std::size_t limit) const;

 private:
  std::vector<CacheEvent> ring_;  // event n is at n modulo its size
  std::uint64_t next_ = 0;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_EVENT_LOG_H_
