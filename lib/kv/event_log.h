// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_EVENT_LOG_H_
#define INCIPIT_KV_EVENT_LOG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/prefix_index.h"

namespace incipit::kv {

/// A change of what a cache knows. Identities are hashes of whole prefixes, namespace included; the
/// index never has two blocks of one prefix, so a removed identity is gone.
struct CacheEvent {
  enum class Kind : std::uint8_t { kStored, kRemoved, kCleared };
  Kind kind = Kind::kStored;
  std::uint64_t sequence = 0;  // one more than that of the event before
  std::uint64_t identity = 0;  // of the prefix that ends with the block
  std::uint64_t parent = 0;    // of the prefix in front; of the namespace, for a first block
  std::array<TokenId, kBlockTokens> tokens = {};  // of the block, where it was stored

  friend bool operator==(const CacheEvent&, const CacheEvent&) = default;
};

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

  struct Batch {
    std::vector<CacheEvent> events = {};
    std::uint64_t next = 0;  // what to ask for after these
    bool lost = false;       // what was asked for is not kept any more: take a snapshot
  };
  /// At most `limit` events from number `from` on.
  Batch read(std::uint64_t from, std::size_t limit) const;

 private:
  std::vector<CacheEvent> ring_;  // event n is at n modulo its size
  std::uint64_t next_ = 0;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_EVENT_LOG_H_
