// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_REDIS_NODE_H_
#define INCIPIT_STORE_REDIS_NODE_H_

#include <atomic>
#include <optional>
#include <string>

#include "incipit/store.h"
#include "store/redis_command.h"
#include "store/redis_reply.h"
#include "store/server_pool.h"

namespace incipit::store {

/// A command, and what may be said to it.
struct RedisRequest {
  std::string name;  // the key, by which a cluster finds the node
  RedisCommand command;
  RedisReply::Kind expected;       // besides an error, and nil
  const ItemRoom* room = nullptr;  // for the item that comes as a string
};

/// One Redis server. Thread-safe.
class RedisNode {
 public:
  RedisNode(Endpoint endpoint, const RedisStoreOptions& options);

  const Endpoint& endpoint() const noexcept { return pool_.endpoint(); }

  /// None where no sound reply came by the deadline. An item goes to the request's room; one that
  /// finds none is nil. `asking` is for a node that is about to take over the key's slot.
  std::optional<RedisReply> call(const RedisRequest& request, Deadline deadline,
                                 bool asking = false);

  /// The last call had no answer, and that a moment ago: it had better rest, if others can do.
  bool rests() const noexcept;

 private:
  ServerPool pool_;
  std::atomic<Deadline::rep> rests_until_ = 0;
};

/// A reply from a server that can serve: none, or that it still loads or misses its master, is no
/// such.
bool is_answer(const std::optional<RedisReply>& reply);

/// An error that says `word` first.
bool is_error(const RedisReply& reply, std::string_view word);

/// What a reply means to the caller of a Store.
StoreStatus status_of(const std::optional<RedisReply>& reply);

}  // namespace incipit::store

#endif  // INCIPIT_STORE_REDIS_NODE_H_
