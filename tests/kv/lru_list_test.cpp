// SPDX-License-Identifier: Apache-2.0
#include "kv/lru_list.h"

#include <algorithm>
#include <random>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::kNoNode;
using kv::LruList;
using kv::NodeId;

std::vector<NodeId> order(const LruList& list) {
  std::vector<NodeId> nodes;
  for (NodeId node = list.oldest(); node != kNoNode; node = list.newer(node)) nodes.push_back(node);
  return nodes;
}

TEST_CASE("an empty list has no oldest") {
  LruList list(3);
  CHECK(list.size() == 0);
  CHECK(list.oldest() == kNoNode);
  CHECK_FALSE(list.contains(2));
}

TEST_CASE("the oldest is the one that was put in first") {
  LruList list(4);
  for (const NodeId node : {2u, 0u, 3u}) list.push_newest(node);
  CHECK(order(list) == std::vector<NodeId>{2, 0, 3});
  list.remove(0);
  CHECK(order(list) == std::vector<NodeId>{2, 3});
  list.push_newest(0);
  list.remove(2);
  CHECK(order(list) == std::vector<NodeId>{3, 0});
  list.clear();
  CHECK(order(list).empty());
  CHECK_FALSE(list.contains(3));
  list.push_newest(1);
  CHECK(order(list) == std::vector<NodeId>{1});
}

TEST_CASE("a node is in the list once, and only what is in it comes out") {
  LruList list(2);
  list.push_newest(1);
  CHECK_THROWS_AS(list.push_newest(1), Error);
  CHECK_THROWS_AS(list.remove(0), Error);
  CHECK_THROWS_AS(list.push_newest(2), Error);
  CHECK_THROWS_AS(list.remove(2), Error);
  CHECK(order(list) == std::vector<NodeId>{1});
}

TEST_CASE("a list agrees with a vector") {
  constexpr NodeId kNodes = 20;
  std::mt19937_64 random(1);
  LruList list(kNodes);
  std::vector<NodeId> expected;
  for (int i = 0; i < 5000; ++i) {
    const auto node = static_cast<NodeId>(random() % kNodes);
    const auto at = std::find(expected.begin(), expected.end(), node);
    REQUIRE(list.contains(node) == (at != expected.end()));
    if (at == expected.end()) {
      list.push_newest(node);
      expected.push_back(node);
    } else {
      list.remove(node);
      expected.erase(at);
    }
    REQUIRE(list.size() == expected.size());
    REQUIRE(order(list) == expected);
  }
}

}  // namespace
}  // namespace incipit::test
