// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_REDIS_TOPOLOGY_H_
#define INCIPIT_STORE_REDIS_TOPOLOGY_H_

#include <memory>
#include <optional>

#include "store/redis_node.h"

namespace incipit::store {

/// Some Redis servers: it knows which of them to ask. Thread-safe.
class RedisTopology {
 public:
  RedisTopology() = default;
  virtual ~RedisTopology() = default;
  RedisTopology(const RedisTopology&) = delete;
  RedisTopology& operator=(const RedisTopology&) = delete;

  /// None where nobody answered by the deadline. `reads`: the request changes nothing.
  virtual std::optional<RedisReply> call(const RedisRequest& request, bool reads,
                                         Deadline deadline) = 0;
};

/// A server, and the replicas that are read while it is down.
std::unique_ptr<RedisTopology> make_redis_single(const RedisStoreOptions& options);
/// The cluster that the given server belongs to.
std::unique_ptr<RedisTopology> make_redis_cluster(const RedisStoreOptions& options);

}  // namespace incipit::store

#endif  // INCIPIT_STORE_REDIS_TOPOLOGY_H_
