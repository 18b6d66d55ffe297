// SPDX-License-Identifier: Apache-2.0
#include "kv/eviction_order.h"

#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::EvictionOrder;
using kv::kNoNode;
using kv::NodeId;
using kv::Rank;

NodeId evict(EvictionOrder& order) {
  const NodeId victim = order.victim();
  if (victim == kNoNode) return victim;
  order.remove_candidate(victim);
  order.remove(victim, true);
  return victim;
}

TEST_CASE("ranks go one after the other, each in the order of its policy") {
  EvictionOrder order(Eviction::kLru, 8);
  order.prepare(Rank::kLow);
  order.prepare(Rank::kHigh);
  order.prepare(Rank::kPinned);
  order.prepare(Rank::kLow);  // changes nothing
  const std::vector<Rank> ranks{Rank::kHigh,   Rank::kNormal, Rank::kLow,
                                Rank::kPinned, Rank::kNormal, Rank::kLow};
  for (NodeId node = 0; node < ranks.size(); ++node) {
    order.insert(node, {.identity = node}, ranks[node]);
    order.add_candidate(node);
  }
  order.use(2);
  CHECK(order.candidates() == 6);
  CHECK(order.rank(3) == Rank::kPinned);
  std::vector<NodeId> gone;
  for (NodeId node; (node = evict(order)) != kNoNode;) gone.push_back(node);
  CHECK(gone == std::vector<NodeId>{5, 2, 1, 4, 0, 3});
}

TEST_CASE("a node can change its rank while it is no candidate") {
  EvictionOrder order(Eviction::kGdsf, 4);
  order.insert(0, {}, Rank::kNormal);
  order.insert(1, {}, Rank::kNormal);
  CHECK_THROWS_AS(order.set_rank(0, {}, Rank::kLow), Error);  // was not prepared
  order.prepare(Rank::kLow);
  order.insert(0, {}, Rank::kNormal);
  order.set_rank(0, {}, Rank::kLow);
  order.add_candidate(1);
  CHECK(order.victim() == 1);
  order.add_candidate(0);
  CHECK(order.victim() == 0);
  CHECK_FALSE(order.is_candidate(2));
  order.clear();
  CHECK(order.candidates() == 0);
  CHECK(order.victim() == kNoNode);
}

}  // namespace
}  // namespace incipit::test
