// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_ARC_POLICY_H_
#define INCIPIT_KV_ARC_POLICY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/eviction_policy.h"
#include "kv/ghost_list.h"
#include "kv/indexed_heap.h"

namespace incipit::kv {

/// ARC: Megiddo and Modha, "ARC: A self-tuning, low overhead replacement cache", FAST 2003.
///
/// Two lists by recency: nodes that came once (T1 of the paper) and nodes that were found, or came
/// back (T2). Each has a list of what was evicted from it (B1, B2). The share of the first list
/// grows when something comes back that was evicted from it, and shrinks when something comes back
/// to the second.
///
/// Here room is made before it is known for what, so the paper's tie at |T1| = share always goes to
/// the second list; and where the list whose turn it is has no candidate, the other one gives.
class ArcPolicy final : public EvictionPolicy {
 public:
  explicit ArcPolicy(std::size_t capacity);

  void prefetch(std::uint64_t identity) const noexcept override;
  void insert(NodeId node, const NodeFacts& facts) override;
  void hit(NodeId node) override;
  void use(NodeId node) override;
  void add_candidate(NodeId node) override;
  void remove_candidate(NodeId node) override;
  NodeId victim() override;
  void remove(NodeId node, bool evicted) override;
  void clear() noexcept override;
  std::size_t candidates() const noexcept override;
  bool is_candidate(NodeId node) const override;

 private:
  struct Node {
    std::uint64_t identity = 0;
    std::uint64_t last_use = 0;
    bool often = false;
  };
  struct List {
    explicit List(std::size_t capacity) : candidates(capacity), ghosts(capacity) {}
    std::size_t size = 0;                   // nodes
    IndexedHeap<std::uint64_t> candidates;  // by last use
    GhostList ghosts;
  };

  List& list_of(const Node& node) { return node.often ? often_ : once_; }
  void bound_ghosts();

  std::vector<Node> nodes_;
  std::uint64_t uses_ = 0;
  List once_, often_;
  std::size_t share_ = 0;  // nodes that `once_` should have, 0 to the capacity
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_ARC_POLICY_H_
