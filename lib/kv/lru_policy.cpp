// SPDX-License-Identifier: Apache-2.0
#include "kv/lru_policy.h"

#include "base/check.h"

namespace incipit::kv {

void LruPolicy::insert(NodeId node, const NodeFacts& /*facts*/) { last_use_.at(node) = ++uses_; }

void LruPolicy::use(NodeId node) {
  last_use_.at(node) = ++uses_;
  if (candidates_.contains(node)) candidates_.update(node, uses_);
}

void LruPolicy::remove(NodeId node, bool /*evicted*/) { INCIPIT_CHECK(!is_candidate(node)); }

}  // namespace incipit::kv
