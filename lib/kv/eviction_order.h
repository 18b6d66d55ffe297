// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_EVICTION_ORDER_H_
#define INCIPIT_KV_EVICTION_ORDER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kv/eviction_policy.h"

namespace incipit::kv {

/// How dearly a node is kept: all candidates of a rank go before any of the next one.
enum class Rank : std::uint8_t { kLow, kNormal, kHigh, kPinned };
inline constexpr std::size_t kRanks = 4;

/// Chooses what makes room: the lowest rank first, within it as a policy says. Each rank has a
/// policy of its own, so a node that changes its rank comes to the new one as if it were new.
///
/// The calls are those of EvictionPolicy, which see. Not thread-safe.
class EvictionOrder {
 public:
  /// For node ids below `capacity`.
  EvictionOrder(Eviction kind, std::size_t capacity);

  /// Makes the policy of a rank; before a node gets that rank. Only kNormal has one from the start,
  /// since a policy takes memory for all nodes.
  void prepare(Rank rank);

  void prefetch(std::uint64_t identity) const noexcept;
  void insert(NodeId node, const NodeFacts& facts, Rank rank);
  void hit(NodeId node) { policy_of(node).hit(node); }
  void use(NodeId node) { policy_of(node).use(node); }
  void add_candidate(NodeId node) { policy_of(node).add_candidate(node); }
  void remove_candidate(NodeId node) { policy_of(node).remove_candidate(node); }
  void remove(NodeId node, bool evicted) { policy_of(node).remove(node, evicted); }
  /// Gives a node that is no candidate another rank.
  void set_rank(NodeId node, const NodeFacts& facts, Rank rank);
  NodeId victim();
  void clear() noexcept;

  Rank rank(NodeId node) const { return ranks_.at(node); }
  bool is_candidate(NodeId node) const { return policy_of(node).is_candidate(node); }
  std::size_t candidates() const noexcept;

 private:
  EvictionPolicy& policy_of(NodeId node) const;

  Eviction kind_;
  std::vector<Rank> ranks_;                                            // [node]
  std::array<std::unique_ptr<EvictionPolicy>, kRanks> policies_ = {};  // [rank]
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_EVICTION_ORDER_H_
