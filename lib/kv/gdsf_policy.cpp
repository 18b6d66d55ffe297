// SPDX-License-Identifier: Apache-2.0
#include "kv/gdsf_policy.h"

#include <algorithm>

#include "base/check.h"

namespace incipit::kv {

void GdsfPolicy::insert(NodeId node, const NodeFacts& facts) {
  nodes_.at(node) = {.cost = std::uint64_t{kDepthOfEqualWork} + facts.depth, .frequency = 1};
  use(node);
}

void GdsfPolicy::hit(NodeId node) {
  ++nodes_.at(node).frequency;
  use(node);
}

void GdsfPolicy::use(NodeId node) {
  // The clock is at most the number of all hits and insertions times the highest cost (2^31): no
  // sum overflows within 2^32 of them.
  Node& used = nodes_.at(node);
  used.value = {clock_ + used.frequency * used.cost, ++uses_};
  if (candidates_.contains(node)) candidates_.update(node, used.value);
}

void GdsfPolicy::remove(NodeId node, bool evicted) {
  INCIPIT_CHECK(!is_candidate(node));
  if (evicted) clock_ = std::max(clock_, nodes_[node].value.worth);
}

void GdsfPolicy::clear() noexcept {
  candidates_.clear();
  clock_ = 0;
}

}  // namespace incipit::kv
