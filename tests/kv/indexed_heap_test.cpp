// SPDX-License-Identifier: Apache-2.0
#include "kv/indexed_heap.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::kNoNode;
using kv::NodeId;
using Heap = kv::IndexedHeap<int>;

TEST_CASE("an empty heap has no least") {
  Heap heap(2);
  CHECK(heap.size() == 0);
  CHECK(heap.least() == kNoNode);
  CHECK_FALSE(heap.contains(1));
}

TEST_CASE("a node is in the heap once, and only what is in it comes out") {
  Heap heap(2);
  heap.push(1, 5);
  CHECK_THROWS_AS(heap.push(1, 6), Error);
  CHECK_THROWS_AS(heap.update(0, 6), Error);
  CHECK_THROWS_AS(heap.remove(0), Error);
  CHECK_THROWS(heap.push(2, 6));
  CHECK(heap.least() == 1);
  CHECK(heap.size() == 1);
  heap.clear();
  CHECK_FALSE(heap.contains(1));
  heap.push(1, 7);
  CHECK(heap.least() == 1);
}

TEST_CASE("a heap agrees with a set through pushes, updates and removals") {
  constexpr NodeId kNodes = 64;
  std::mt19937_64 random(1);
  kv::IndexedHeap<std::pair<int, NodeId>> heap(kNodes);
  std::set<std::pair<int, NodeId>> expected;
  std::vector<int> keys(kNodes);
  for (int i = 0; i < 20'000; ++i) {
    const auto node = static_cast<NodeId>(random() % kNodes);
    const int key = static_cast<int>(random() % 100);
    REQUIRE(heap.contains(node) == expected.contains({keys[node], node}));
    if (!heap.contains(node)) {
      heap.push(node, {key, node});
      expected.emplace(key, node);
      keys[node] = key;
    } else if (random() % 2 == 0) {
      heap.update(node, {key, node});
      expected.erase({std::exchange(keys[node], key), node});
      expected.emplace(key, node);
    } else {
      heap.remove(node);
      expected.erase({keys[node], node});
    }
    REQUIRE(heap.size() == expected.size());
    REQUIRE(heap.least() == (expected.empty() ? kNoNode : expected.begin()->second));
  }
}

}  // namespace
}  // namespace incipit::test
