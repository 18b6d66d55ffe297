// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "store/redis_slots.h"
#include "store/redis_topology.h"

namespace incipit::store {
namespace {

using Clock = std::chrono::steady_clock;
using Reply = std::optional<RedisReply>;
using Node = std::shared_ptr<RedisNode>;

// Redirections that one request follows: a slot that moves costs two.
constexpr int kMaxHops = 5;
// The map is asked anew at most this often, however much goes wrong.
constexpr std::chrono::milliseconds kMapRests{500};
// More nodes than that are no cluster but nonsense.
constexpr std::size_t kMaxNodes = 1024;

class RedisCluster final : public RedisTopology {
 public:
  explicit RedisCluster(const RedisStoreOptions& options)
      : options_(options), seed_(make_node({options.host, options.port})) {}

  Reply call(const RedisRequest& request, bool, Deadline deadline) override {
    const std::size_t slot = redis_slot(request.name);
    Node node = owner(slot, deadline);
    bool asking = false;
    for (int hop = 0; node != nullptr && hop <= kMaxHops; ++hop) {
      // A node that hangs costs its slots the deadline once in a while, not in every call.
      Reply reply = node->rests() ? std::nullopt : node->call(request, deadline, asking);
      if (!reply) {
        // Down: perhaps another has taken its slots over.
        const Node other = replacement(slot, deadline);
        if (other == node) return std::nullopt;
        node = other;
        asking = false;
        continue;
      }
      const std::optional<RedisRedirection> redirection =
          parse_redis_redirection(*reply, node->endpoint());
      if (!redirection) return reply;
      asking = redirection->ask;
      node = asking ? find_or_make(redirection->to) : moved(slot, redirection->to, deadline);
    }
    return std::nullopt;
  }

 private:
  Node make_node(Endpoint endpoint) const {
    return std::make_shared<RedisNode>(std::move(endpoint), options_);
  }

  // Null where no node says who it is.
  Node owner(std::size_t slot, Deadline deadline) {
    if (wants_map(deadline)) ask_for_map(deadline);
    const std::lock_guard lock(mutex_);
    return owners_[slot];
  }

  Node replacement(std::size_t slot, Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      stale_ = true;
    }
    return owner(slot, deadline);
  }

  Node moved(std::size_t slot, const Endpoint& to, Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      stale_ = true;
    }
    if (wants_map(deadline)) ask_for_map(deadline);
    Node node = find_or_make(to);
    const std::lock_guard lock(mutex_);
    owners_[slot] = node;
    return node;
  }

  Node find_or_make(const Endpoint& endpoint) {
    const std::lock_guard lock(mutex_);
    return find_or_make_locked(endpoint);
  }
  Node find_or_make_locked(const Endpoint& endpoint) {
    for (const Node& node : nodes_) {
      if (node->endpoint() == endpoint) return node;
    }
    Node node = make_node(endpoint);
    if (nodes_.size() < kMaxNodes) nodes_.push_back(node);
    return node;
  }

  bool wants_map(Deadline deadline) {
    const Deadline now = Clock::now();
    const std::lock_guard lock(mutex_);
    if (now >= deadline || (has_map_ && (!stale_ || now < next_map_))) return false;
    next_map_ = now + kMapRests;
    return true;
  }

  // Asks one node after the other, those that seem well first; each gets a share of the time.
  void ask_for_map(Deadline deadline) {
    std::vector<Node> candidates;
    {
      const std::lock_guard lock(mutex_);
      candidates = nodes_;
      candidates.push_back(seed_);
      std::stable_partition(candidates.begin(), candidates.end(),
                            [](const Node& node) { return !node->rests(); });
    }
    const RedisRequest request = {{}, {"CLUSTER", "SLOTS"}, RedisReply::Kind::kArray};
    for (const Node& node : candidates) {
      const Reply reply = node->call(request, share_of(deadline, 2));
      if (!reply) continue;
      const auto ranges = parse_redis_slots(*reply, node->endpoint());
      if (ranges && use_map(*ranges)) return;
    }
  }

  // Nodes that the map no longer names go, with their connections.
  bool use_map(const std::vector<RedisSlotRange>& ranges) {
    std::vector<Node> before, named, owners(kRedisSlots);
    const std::lock_guard lock(mutex_);
    for (const RedisSlotRange& range : ranges) {
      const Node node = find_or_make_locked(range.master);
      if (std::find(named.begin(), named.end(), node) == named.end()) named.push_back(node);
      if (named.size() > kMaxNodes) return false;
      std::fill(owners.begin() + static_cast<std::ptrdiff_t>(range.first),
                owners.begin() + static_cast<std::ptrdiff_t>(range.last) + 1, node);
    }
    owners_.swap(owners);
    before.swap(nodes_);
    nodes_.swap(named);
    has_map_ = true;
    stale_ = false;
    next_map_ = Clock::now() + kMapRests;
    return true;
  }

  const RedisStoreOptions options_;
  const Node seed_;
  std::mutex mutex_;
  std::vector<Node> nodes_;
  std::vector<Node> owners_ = std::vector<Node>(kRedisSlots);  // the map; null: nobody
  bool has_map_ = false;                                       // somebody answered once
  bool stale_ = false;  // something has contradicted the map since
  Clock::time_point next_map_;
};

}  // namespace

std::unique_ptr<RedisTopology> make_redis_cluster(const RedisStoreOptions& options) {
  return std::make_unique<RedisCluster>(options);
}

}  // namespace incipit::store
