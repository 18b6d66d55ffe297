// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <vector>

#include "store/redis_topology.h"

namespace incipit::store {
namespace {

using Reply = std::optional<RedisReply>;

class SingleRedis final : public RedisTopology {
 public:
  explicit SingleRedis(const RedisStoreOptions& options)
      : master_(Endpoint{options.host, options.port}, options) {
    for (const auto& [host, port] : options.replicas) {
      replicas_.push_back(std::make_unique<RedisNode>(Endpoint{host, port}, options));
    }
  }

  Reply call(const RedisRequest& request, bool reads, Deadline deadline) override {
    if (!reads || replicas_.empty()) return master_.call(request, deadline);
    const bool skipped = master_.rests();
    if (!skipped) {
      // What is left of the time is for the replicas.
      Reply reply = master_.call(request, share_of(deadline, 2));
      if (is_answer(reply)) return reply;
    }
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
      const std::size_t left = replicas_.size() - i + (skipped ? 1 : 0);
      Reply reply = replicas_[i]->call(request, share_of(deadline, left));
      if (is_answer(reply)) return reply;
    }
    return skipped ? master_.call(request, deadline) : std::nullopt;
  }

 private:
  RedisNode master_;
  std::vector<std::unique_ptr<RedisNode>> replicas_;
};

}  // namespace

std::unique_ptr<RedisTopology> make_redis_single(const RedisStoreOptions& options) {
  return std::make_unique<SingleRedis>(options);
}

}  // namespace incipit::store
