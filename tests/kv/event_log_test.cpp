// SPDX-License-Identifier: Apache-2.0
#include "kv/event_log.h"

#include <cstdint>
#include <limits>

#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::EventLog;

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// The `count` events after those that are there, each about another block.
void push(EventLog& log, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    CacheEvent event;
    event.kind = CacheEvent::Kind::kRemoved;
    event.identity = 1000 + log.next();
    event.sequence = 77;  // its number is the log's to give
    log.push(event);
  }
}

/// Whether a batch has the events from `first` to `end`, and nothing was lost.
bool has(const CacheEvents& batch, std::uint64_t first, std::uint64_t end) {
  if (batch.lost || batch.next != end || batch.events.size() != end - first) return false;
  for (const CacheEvent& event : batch.events) {
    if (event.sequence != first || event.identity != 1000 + first ||
        event.kind != CacheEvent::Kind::kRemoved) {
      return false;
    }
    ++first;
  }
  return true;
}

TEST_CASE("events are read in order from any that is kept, and numbered without a gap") {
  EventLog log(4);
  CHECK(has(log.read(0, kNoLimit), 0, 0));
  push(log, 3);
  CHECK(log.next() == 3);
  for (std::uint64_t from = 0; from <= 3; ++from) CHECK(has(log.read(from, kNoLimit), from, 3));
  push(log, 1);
  CHECK(has(log.read(0, kNoLimit), 0, 4));
  push(log, 7);  // round the ring, more than once
  CHECK(has(log.read(7, kNoLimit), 7, 11));
  CHECK(has(log.read(11, kNoLimit), 11, 11));
}

TEST_CASE("a reader who is too late, or ahead, is told so and where to go on") {
  EventLog log(4);
  push(log, 10);
  for (const std::uint64_t from : {std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{11},
                                   std::numeric_limits<std::uint64_t>::max()}) {
    const CacheEvents batch = log.read(from, kNoLimit);
    CHECK(batch.lost);
    CHECK(batch.events.empty());
    CHECK(batch.next == 10);
  }
  CHECK(has(log.read(6, kNoLimit), 6, 10));
}

TEST_CASE("a limit cuts a batch, and the next one goes on behind it") {
  EventLog log(8);
  push(log, 13);
  CHECK(has(log.read(5, 3), 5, 8));
  CHECK(has(log.read(8, 3), 8, 11));
  CHECK(has(log.read(11, 3), 11, 13));
  CHECK(has(log.read(9, 0), 9, 9));
}

TEST_CASE("a log without room counts, and has nothing to give") {
  EventLog log(0);
  CHECK(has(log.read(0, kNoLimit), 0, 0));
  push(log, 3);
  CHECK(log.next() == 3);
  CHECK(has(log.read(3, kNoLimit), 3, 3));
  CHECK(log.read(2, kNoLimit).lost);
}

}  // namespace
}  // namespace incipit::test
