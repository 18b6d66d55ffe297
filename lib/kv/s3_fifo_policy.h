// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_S3_FIFO_POLICY_H_
#define INCIPIT_KV_S3_FIFO_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/eviction_policy.h"
#include "kv/ghost_list.h"
#include "kv/indexed_heap.h"

namespace incipit::kv {

/// S3-FIFO: Yang, Zhang, Qiu, Yue and Vigfusson, "FIFO queues are all you need for cache eviction",
/// SOSP 2023.
///
/// New nodes enter a small queue, a tenth of all. Whoever reaches its end goes to the main queue if
/// prompts have found it twice since, and is evicted otherwise; if it comes back soon, it enters
/// the main queue. There, each hit (of at most three) buys one more round.
///
/// Here only candidates leave a queue: those at its end that are none are passed over, and keep
/// their place.
class S3FifoPolicy final : public EvictionPolicy {
 public:
  explicit S3FifoPolicy(std::size_t capacity);

  void prefetch(std::uint64_t identity) const noexcept override { ghosts_.prefetch(identity); }
  void insert(NodeId node, const NodeFacts& facts) override;
  void hit(NodeId node) override;
  void use(NodeId /*node*/) override {}
  void add_candidate(NodeId node) override;
  void remove_candidate(NodeId node) override;
  NodeId victim() override;
  void remove(NodeId node, bool evicted) override;
  void clear() noexcept override;
  std::size_t candidates() const noexcept override;
  bool is_candidate(NodeId node) const override;

 private:
  static constexpr std::uint8_t kMostHits = 3;
  static constexpr std::uint8_t kHitsForMain = 2;
  static constexpr std::size_t kSmallShare = 10;  // one part in so many

  struct Node {
    std::uint64_t identity = 0;
    std::uint64_t place = 0;  // in its queue; less is nearer to the end
    std::uint8_t hits = 0;
    bool in_main = false;
  };
  struct Queue {
    explicit Queue(std::size_t capacity) : candidates(capacity) {}
    std::size_t size = 0;                   // nodes
    IndexedHeap<std::uint64_t> candidates;  // by place
  };

  Queue& queue_of(const Node& node) { return node.in_main ? main_ : small_; }

  std::vector<Node> nodes_;
  std::uint64_t places_ = 0;  // given out so far
  Queue small_, main_;
  GhostList ghosts_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_S3_FIFO_POLICY_H_
