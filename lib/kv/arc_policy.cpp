// SPDX-License-Identifier: Apache-2.0
#include "kv/arc_policy.h"

#include <algorithm>

#include "base/check.h"

namespace incipit::kv {

ArcPolicy::ArcPolicy(std::size_t capacity) : nodes_(capacity), once_(capacity), often_(capacity) {}

void ArcPolicy::prefetch(std::uint64_t identity) const noexcept {
  once_.ghosts.prefetch(identity);
  often_.ghosts.prefetch(identity);
}

void ArcPolicy::insert(NodeId node, const NodeFacts& facts) {
  const std::size_t gone_once = once_.ghosts.size(), gone_often = often_.ghosts.size();
  bool often = true;
  if (once_.ghosts.take(facts.identity)) {
    const std::size_t step = std::max<std::size_t>(gone_often / gone_once, 1);
    share_ = std::min(share_ + step, nodes_.size());
  } else if (often_.ghosts.take(facts.identity)) {
    const std::size_t step = std::max<std::size_t>(gone_once / gone_often, 1);
    share_ -= std::min(share_, step);
  } else {
    often = false;
  }
  nodes_.at(node) = {.identity = facts.identity, .last_use = ++uses_, .often = often};
  ++list_of(nodes_[node]).size;
  bound_ghosts();
}

void ArcPolicy::hit(NodeId node) {
  Node& found = nodes_.at(node);
  if (!found.often) {
    found.often = true;
    --once_.size;
    ++often_.size;
    if (once_.candidates.contains(node)) {
      once_.candidates.remove(node);
      often_.candidates.push(node, found.last_use);
    }
  }
  use(node);
}

void ArcPolicy::use(NodeId node) {
  Node& used = nodes_.at(node);
  used.last_use = ++uses_;
  List& list = list_of(used);
  if (list.candidates.contains(node)) list.candidates.update(node, used.last_use);
}

void ArcPolicy::add_candidate(NodeId node) {
  const Node& added = nodes_.at(node);
  list_of(added).candidates.push(node, added.last_use);
}

void ArcPolicy::remove_candidate(NodeId node) { list_of(nodes_.at(node)).candidates.remove(node); }

NodeId ArcPolicy::victim() {
  const List& first = once_.size > share_ ? once_ : often_;
  const List& second = once_.size > share_ ? often_ : once_;
  return first.candidates.size() > 0 ? first.candidates.least() : second.candidates.least();
}

void ArcPolicy::remove(NodeId node, bool evicted) {
  INCIPIT_CHECK(!is_candidate(node));
  const Node& removed = nodes_[node];
  List& list = list_of(removed);
  --list.size;
  if (!evicted) return;
  list.ghosts.push(removed.identity);
  bound_ghosts();
}

/// As in the paper: |T1| + |B1| <= capacity, and all four together twice that.
void ArcPolicy::bound_ghosts() {
  const std::size_t capacity = nodes_.size();
  while (once_.size + once_.ghosts.size() > capacity) once_.ghosts.drop_oldest();
  while (once_.size + once_.ghosts.size() + often_.size + often_.ghosts.size() > 2 * capacity) {
    often_.ghosts.drop_oldest();
  }
}

void ArcPolicy::clear() noexcept {
  for (List* const list : {&once_, &often_}) {
    list->size = 0;
    list->candidates.clear();
    list->ghosts.clear();
  }
  share_ = 0;
}

std::size_t ArcPolicy::candidates() const noexcept {
  return once_.candidates.size() + often_.candidates.size();
}

bool ArcPolicy::is_candidate(NodeId node) const {
  return once_.candidates.contains(node) || often_.candidates.contains(node);
}

}  // namespace incipit::kv
