// SPDX-License-Identifier: Apache-2.0
#include "kv/s3_fifo_policy.h"

#include "base/check.h"

namespace incipit::kv {

S3FifoPolicy::S3FifoPolicy(std::size_t capacity)
    : nodes_(capacity),
      small_(capacity),
      main_(capacity),
      ghosts_(capacity - capacity / kSmallShare) {}

void S3FifoPolicy::insert(NodeId node, const NodeFacts& facts) {
  nodes_.at(node) = {
      .identity = facts.identity, .place = ++places_, .in_main = ghosts_.take(facts.identity)};
  ++queue_of(nodes_[node]).size;
}

void S3FifoPolicy::hit(NodeId node) {
  std::uint8_t& hits = nodes_.at(node).hits;
  if (hits < kMostHits) ++hits;
}

void S3FifoPolicy::add_candidate(NodeId node) {
  const Node& added = nodes_.at(node);
  queue_of(added).candidates.push(node, added.place);
}

void S3FifoPolicy::remove_candidate(NodeId node) {
  queue_of(nodes_.at(node)).candidates.remove(node);
}

NodeId S3FifoPolicy::victim() {
  // Each turn uses up a hit or moves a node to the main queue for good, so hits pay for the turns.
  for (;;) {
    const bool small_is_full = small_.size * kSmallShare >= small_.size + main_.size;
    const bool from_small =
        small_.candidates.size() > 0 && (small_is_full || main_.candidates.size() == 0);
    const NodeId last = (from_small ? small_ : main_).candidates.least();
    if (last == kNoNode) return kNoNode;
    Node& node = nodes_[last];
    if (from_small) {
      if (node.hits < kHitsForMain) return last;
      small_.candidates.remove(last);
      --small_.size;
      ++main_.size;
      node.in_main = true;
      node.hits = 0;
      node.place = ++places_;
      main_.candidates.push(last, node.place);
    } else {
      if (node.hits == 0) return last;
      --node.hits;
      node.place = ++places_;
      main_.candidates.update(last, node.place);
    }
  }
}

void S3FifoPolicy::remove(NodeId node, bool evicted) {
  INCIPIT_CHECK(!is_candidate(node));
  const Node& removed = nodes_[node];
  // Who leaves the main queue had its chance, and is forgotten.
  if (evicted && !removed.in_main) ghosts_.push(removed.identity);
  --queue_of(removed).size;
}

void S3FifoPolicy::clear() noexcept {
  for (Queue* const queue : {&small_, &main_}) {
    queue->size = 0;
    queue->candidates.clear();
  }
  ghosts_.clear();
}

std::size_t S3FifoPolicy::candidates() const noexcept {
  return small_.candidates.size() + main_.candidates.size();
}

bool S3FifoPolicy::is_candidate(NodeId node) const {
  return small_.candidates.contains(node) || main_.candidates.contains(node);
}

}  // namespace incipit::kv
