// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_LRU_POLICY_H_
#define INCIPIT_KV_LRU_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/eviction_policy.h"
#include "kv/indexed_heap.h"

namespace incipit::kv {

/// Least recently used first. Coming, being found and being let go of are uses.
class LruPolicy final : public EvictionPolicy {
 public:
  explicit LruPolicy(std::size_t capacity) : last_use_(capacity, 0), candidates_(capacity) {}

  void insert(NodeId node, const NodeFacts& facts) override;
  void hit(NodeId node) override { use(node); }
  void use(NodeId node) override;
  void add_candidate(NodeId node) override { candidates_.push(node, last_use_.at(node)); }
  void remove_candidate(NodeId node) override { candidates_.remove(node); }
  NodeId victim() override { return candidates_.least(); }
  void remove(NodeId node, bool evicted) override;
  void clear() noexcept override { candidates_.clear(); }
  std::size_t candidates() const noexcept override { return candidates_.size(); }
  bool is_candidate(NodeId node) const override { return candidates_.contains(node); }

 private:
  std::vector<std::uint64_t> last_use_;  // [node]: uses of all nodes up to its last one
  std::uint64_t uses_ = 0;
  IndexedHeap<std::uint64_t> candidates_;  // by last use
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_LRU_POLICY_H_
