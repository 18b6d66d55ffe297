// SPDX-License-Identifier: Apache-2.0
#include "kv/lru_list.h"

#include <algorithm>

#include "base/check.h"

namespace incipit::kv {

LruList::LruList(std::size_t capacity) : links_(capacity + 1) { links_[end()] = {end(), end()}; }

void LruList::push_newest(NodeId node) {
  INCIPIT_CHECK(node < end() && !contains(node));
  const NodeId before = links_[end()].older;
  links_[node] = {before, end()};
  links_[before].newer = node;
  links_[end()].older = node;
  ++size_;
}

void LruList::remove(NodeId node) {
  INCIPIT_CHECK(node < end() && contains(node));
  const Link link = links_[node];
  links_[link.older].newer = link.newer;
  links_[link.newer].older = link.older;
  links_[node] = {};
  --size_;
}

NodeId LruList::oldest() const noexcept { return size_ == 0 ? kNoNode : links_[end()].newer; }

NodeId LruList::newer(NodeId node) const {
  const NodeId next = links_.at(node).newer;
  return next == end() ? kNoNode : next;
}

void LruList::clear() noexcept {
  std::fill(links_.begin(), links_.end(), Link{});
  links_[end()] = {end(), end()};
  size_ = 0;
}

}  // namespace incipit::kv
