// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_GDSF_POLICY_H_
#define INCIPIT_KV_GDSF_POLICY_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/eviction_policy.h"
#include "kv/indexed_heap.h"

namespace incipit::kv {

/// Greedy-Dual-Size with Frequency: Cherkasova, "Improving WWW proxies performance with
/// Greedy-Dual-Size-Frequency caching policy", HP Laboratories report HPL-98-69R1, 1998.
///
/// Least value first. A node's value at its last use is clock + frequency x cost / size. All blocks
/// have one size. The cost is the work to compute the block again: as much as the first block of a
/// prompt for the products with the weights, and as much again for each kDepthOfEqualWork blocks in
/// front that attention reads. The clock is the value of what was evicted last, so that what is not
/// used any more falls behind. Of equal values the least recently used goes first.
///
/// Integers throughout: the same order on every machine.
class GdsfPolicy final : public EvictionPolicy {
 public:
  explicit GdsfPolicy(std::size_t capacity) : nodes_(capacity), candidates_(capacity) {}

  void insert(NodeId node, const NodeFacts& facts) override;
  void hit(NodeId node) override;
  void use(NodeId node) override;
  void add_candidate(NodeId node) override { candidates_.push(node, nodes_.at(node).value); }
  void remove_candidate(NodeId node) override { candidates_.remove(node); }
  NodeId victim() override { return candidates_.least(); }
  void remove(NodeId node, bool evicted) override;
  void clear() noexcept override;
  std::size_t candidates() const noexcept override { return candidates_.size(); }
  bool is_candidate(NodeId node) const override { return candidates_.contains(node); }

  /// Blocks in front of one that double its cost: 8,192 tokens. Attention costs as much as the
  /// products with the weights behind some 4,000 tokens in a model of 135 million parameters, and
  /// 27,000 in one of 7 billion.
  static constexpr std::uint32_t kDepthOfEqualWork = 512;

 private:
  struct Value {
    std::uint64_t worth = 0;     // in 1/kDepthOfEqualWork of the work of a prompt's first block
    std::uint64_t last_use = 0;  // uses of all nodes up to it
    friend auto operator<=>(const Value&, const Value&) = default;
  };
  struct Node {
    Value value = {};
    std::uint64_t cost = 0;
    std::uint64_t frequency = 0;
  };

  std::vector<Node> nodes_;
  std::uint64_t clock_ = 0;
  std::uint64_t uses_ = 0;
  IndexedHeap<Value> candidates_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_GDSF_POLICY_H_
