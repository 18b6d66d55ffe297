// SPDX-License-Identifier: Apache-2.0
#include "kv/node_list.h"

#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::kNoNode;
using kv::NodeId;
using kv::NodeLinks;
using kv::NodeList;

std::vector<NodeId> all_of(const NodeLinks& links, const NodeList& list) {
  std::vector<NodeId> nodes;
  for (NodeId node = list.oldest; node != kNoNode; node = links.newer(node)) nodes.push_back(node);
  CHECK(nodes.size() == list.size);
  CHECK(list.newest == (nodes.empty() ? kNoNode : nodes.back()));
  return nodes;
}

TEST_CASE("nodes keep the order of the ends at which they were put in") {
  NodeLinks links(8);
  NodeList list, other;
  CHECK(all_of(links, list).empty());
  links.push_newest(list, 3);
  links.push_newest(list, 0);
  links.push_oldest(list, 7);
  links.push_newest(other, 5);
  CHECK(all_of(links, list) == std::vector<NodeId>{7, 3, 0});
  CHECK(all_of(links, other) == std::vector<NodeId>{5});
  links.remove(list, 3);
  CHECK(all_of(links, list) == std::vector<NodeId>{7, 0});
  links.push_oldest(other, 3);
  CHECK(all_of(links, other) == std::vector<NodeId>{3, 5});
  links.remove(list, 7);
  links.remove(list, 0);
  CHECK(all_of(links, list).empty());
  CHECK_FALSE(links.contains(7));
  CHECK(links.contains(5));
}

TEST_CASE("a node is in one list at most") {
  NodeLinks links(2);
  NodeList list, other;
  CHECK_THROWS_AS(links.remove(list, 0), Error);
  links.push_newest(list, 0);
  CHECK_THROWS_AS(links.push_newest(other, 0), Error);
  CHECK_THROWS_AS(links.push_oldest(list, 0), Error);
  CHECK(list.size == 1);
}

}  // namespace
}  // namespace incipit::test
