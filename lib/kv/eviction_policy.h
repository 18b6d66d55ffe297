// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_EVICTION_POLICY_H_
#define INCIPIT_KV_EVICTION_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "incipit/prefix_cache.h"
#include "kv/chain_table.h"

namespace incipit::kv {

/// What a policy may know of a node when it comes.
struct NodeFacts {
  std::uint64_t identity = 0;  // the hash of its prefix: equal when the same block comes back
  std::uint32_t depth = 0;     // blocks in front of it; deeper blocks cost more to compute again
};

/// Chooses what makes room. It hears of every node of the prefix tree, and chooses among the
/// candidates: leaves of the tree that no table holds. So what goes is always a leaf.
///
/// All calls are O(log n) amortised, n being the nodes. Only construction allocates: no other call
/// fails, save with Error{kInternal} where it is used wrongly. The same calls give the same victims
/// on every machine. Not thread-safe.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  /// Starts to load what insert() and remove() of such a node will read, where its id does not lead
  /// there.
  virtual void prefetch(std::uint64_t /*identity*/) const noexcept {}
  /// A new node; not a candidate yet.
  virtual void insert(NodeId node, const NodeFacts& facts) = 0;
  /// A prompt found it.
  virtual void hit(NodeId node) = 0;
  /// A table let go of it. Called from a table's last block to its first, so that a block in front
  /// counts as used later.
  virtual void use(NodeId node) = 0;
  /// It became, or is no longer, a leaf that nobody holds. Neither counts as use.
  virtual void add_candidate(NodeId node) = 0;
  virtual void remove_candidate(NodeId node) = 0;
  /// The candidate to evict next; kNoNode where there is none. May reorder what it knows; called
  /// again without another call in between, it answers the same.
  virtual NodeId victim() = 0;
  /// A node that is no candidate goes. `evicted`: to make room, so that its coming back is news.
  virtual void remove(NodeId node, bool evicted) = 0;
  /// Forgets everything, what was evicted included. O(capacity).
  virtual void clear() noexcept = 0;
  virtual std::size_t candidates() const noexcept = 0;
  virtual bool is_candidate(NodeId node) const = 0;
};

/// For node ids below `capacity`. Memory: O(capacity).
std::unique_ptr<EvictionPolicy> make_eviction_policy(Eviction kind, std::size_t capacity);

}  // namespace incipit::kv

#endif  // INCIPIT_KV_EVICTION_POLICY_H_
