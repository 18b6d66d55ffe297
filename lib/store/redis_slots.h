// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_REDIS_SLOTS_H_
#define INCIPIT_STORE_REDIS_SLOTS_H_

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "store/redis_reply.h"
#include "store/server_socket.h"

// How a Redis Cluster spreads keys: 16,384 slots, each with a node. Nodes name others, in replies
// that are as untrusted as all.

namespace incipit::store {

inline constexpr std::size_t kRedisSlots = 16384;

/// The slot of a key: of the part between its first '{' and the next '}' where there is one.
std::size_t redis_slot(std::string_view key);

/// Who serves the slots first to last, the last included.
struct RedisSlotRange {
  std::size_t first = 0, last = 0;
  Endpoint master = {};
};

/// The reply to CLUSTER SLOTS. A node may call itself by an empty name; it is then the one that
/// was `asked`. None where anything is out of order.
std::optional<std::vector<RedisSlotRange>> parse_redis_slots(const RedisReply& reply,
                                                             const Endpoint& asked);

/// Where a node sends us instead.
struct RedisRedirection {
  bool ask = false;  // for this request only; else for good
  Endpoint to = {};
};
/// None where the reply is no "MOVED slot host:port" or "ASK slot host:port".
std::optional<RedisRedirection> parse_redis_redirection(const RedisReply& reply,
                                                        const Endpoint& asked);

}  // namespace incipit::store

#endif  // INCIPIT_STORE_REDIS_SLOTS_H_
