// SPDX-License-Identifier: Apache-2.0
#include "kv/eviction_order.h"

#include "base/check.h"

namespace incipit::kv {

EvictionOrder::EvictionOrder(Eviction kind, std::size_t capacity)
    : kind_(kind), ranks_(capacity, Rank::kNormal) {
  prepare(Rank::kNormal);
}

void EvictionOrder::prepare(Rank rank) {
  std::unique_ptr<EvictionPolicy>& policy = policies_.at(static_cast<std::size_t>(rank));
  if (policy == nullptr) policy = make_eviction_policy(kind_, ranks_.size());
}

EvictionPolicy& EvictionOrder::policy_of(NodeId node) const {
  const auto& policy = policies_[static_cast<std::size_t>(ranks_.at(node))];
  INCIPIT_CHECK(policy != nullptr);
  return *policy;
}

void EvictionOrder::prefetch(std::uint64_t identity) const noexcept {
  for (const auto& policy : policies_) {
    if (policy != nullptr) policy->prefetch(identity);
  }
}

void EvictionOrder::insert(NodeId node, const NodeFacts& facts, Rank rank) {
  ranks_.at(node) = rank;
  policy_of(node).insert(node, facts);
}

void EvictionOrder::set_rank(NodeId node, const NodeFacts& facts, Rank rank) {
  policy_of(node).remove(node, false);
  insert(node, facts, rank);
}

NodeId EvictionOrder::victim() {
  for (const auto& policy : policies_) {
    if (policy == nullptr || policy->candidates() == 0) continue;
    return policy->victim();
  }
  return kNoNode;
}

void EvictionOrder::clear() noexcept {
  for (const auto& policy : policies_) {
    if (policy != nullptr) policy->clear();
  }
}

std::size_t EvictionOrder::candidates() const noexcept {
  std::size_t count = 0;
  for (const auto& policy : policies_) {
    if (policy != nullptr) count += policy->candidates();
  }
  return count;
}

}  // namespace incipit::kv
