// SPDX-License-Identifier: Apache-2.0
#include "kv/event_log.h"

#include <algorithm>

namespace incipit::kv {

void EventLog::push(CacheEvent event) noexcept {
  event.sequence = next_++;
  if (!ring_.empty()) ring_[event.sequence % ring_.size()] = event;
}

EventLog::Batch EventLog::read(std::uint64_t from, std::size_t limit) const {
  const std::uint64_t kept = std::min<std::uint64_t>(next_, ring_.size());
  // Who asks for what has not happened yet followed another cache.
  if (from > next_ || from < next_ - kept) return {.next = next_, .lost = true};
  const std::uint64_t count = std::min<std::uint64_t>(next_ - from, limit);
  Batch batch{.next = from + count};
  batch.events.reserve(count);
  for (std::uint64_t i = from; i < from + count; ++i) {
    batch.events.push_back(ring_[i % ring_.size()]);
  }
  return batch;
}

}  // namespace incipit::kv
