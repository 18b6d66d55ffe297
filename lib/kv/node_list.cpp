// SPDX-License-Identifier: Apache-2.0
#include "kv/node_list.h"

#include "base/check.h"

namespace incipit::kv {

void NodeLinks::push_newest(NodeList& list, NodeId node) {
  put(list, node, {.older = list.newest, .in_list = true});
}

void NodeLinks::push_oldest(NodeList& list, NodeId node) {
  put(list, node, {.newer = list.oldest, .in_list = true});
}

void NodeLinks::put(NodeList& list, NodeId node, const Link& link) {
  INCIPIT_CHECK(!contains(node));
  links_[node] = link;
  (link.older == kNoNode ? list.oldest : links_[link.older].newer) = node;
  (link.newer == kNoNode ? list.newest : links_[link.newer].older) = node;
  ++list.size;
}

void NodeLinks::remove(NodeList& list, NodeId node) {
  INCIPIT_CHECK(contains(node));
  const Link link = links_[node];
  (link.older == kNoNode ? list.oldest : links_[link.older].newer) = link.newer;
  (link.newer == kNoNode ? list.newest : links_[link.newer].older) = link.older;
  links_[node] = {};
  --list.size;
}

}  // namespace incipit::kv
