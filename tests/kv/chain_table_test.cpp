// SPDX-License-Identifier: Apache-2.0
#include "kv/chain_table.h"

#include <cstdint>
#include <map>
#include <random>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::ChainTable;
using kv::kNoNode;
using kv::NodeId;

NodeId find(const ChainTable& table, std::uint64_t hash, NodeId wanted) {
  return table.find(hash, [&](NodeId node) { return node == wanted; });
}

TEST_CASE("an empty table finds nothing") {
  const ChainTable table(1);
  CHECK(table.size() == 0);
  CHECK(find(table, 0, 0) == kNoNode);
  CHECK(table.candidate(0) == kNoNode);
}

TEST_CASE("of equal hashes the proof decides") {
  ChainTable table(4);
  for (NodeId node = 0; node < 4; ++node) table.insert(99, node);
  for (NodeId node = 0; node < 4; ++node) CHECK(find(table, 99, node) == node);
  CHECK(find(table, 99, 4) == kNoNode);
  CHECK(find(table, 98, 0) == kNoNode);
  table.erase(99, 1);
  CHECK(find(table, 99, 1) == kNoNode);
  CHECK(find(table, 99, 3) == 3);
  CHECK(table.size() == 3);
}

TEST_CASE("a table holds its capacity and no more") {
  ChainTable table(3);
  for (NodeId node = 0; node < 4; ++node) table.insert(node, node);  // the next power of two
  CHECK_THROWS_AS(table.insert(9, 9), Error);
  CHECK(table.size() == 4);
}

TEST_CASE("what is not there cannot be erased") {
  ChainTable table(2);
  table.insert(5, 0);
  CHECK_THROWS_AS(table.erase(5, 1), Error);
  CHECK_THROWS_AS(table.erase(6, 0), Error);
  CHECK(find(table, 5, 0) == 0);
}

TEST_CASE("runs that wrap around the end survive deletion") {
  ChainTable table(4);  // 8 slots
  table.insert(7, 0);
  table.insert(7, 1);  // slot 0
  table.insert(0, 2);  // slot 1
  table.insert(6, 3);
  table.erase(7, 0);
  table.check_integrity();
  CHECK(find(table, 7, 1) == 1);
  CHECK(find(table, 0, 2) == 2);
  CHECK(find(table, 6, 3) == 3);
}

TEST_CASE("a table agrees with a std::map, for good and bad hashes") {
  constexpr NodeId kNodes = 60;
  const std::uint64_t hashes = GENERATE(1u, 5u, 64u, 1000000007u);
  std::mt19937_64 random(hashes);
  ChainTable table(kNodes);
  std::map<NodeId, std::uint64_t> present;
  for (int i = 0; i < 20000; ++i) {
    const auto node = static_cast<NodeId>(random() % kNodes);
    if (const auto at = present.find(node); at != present.end()) {
      table.erase(at->second, node);
      present.erase(at);
    } else {
      present[node] = random() % hashes * 0x10001;
      table.insert(present[node], node);
    }
    if (i % 50 != 0) continue;
    table.check_integrity();
    REQUIRE(table.size() == present.size());
    for (NodeId each = 0; each < kNodes; ++each) {
      const auto at = present.find(each);
      const std::uint64_t hash = at == present.end() ? random() % hashes * 0x10001 : at->second;
      REQUIRE(find(table, hash, each) == (at == present.end() ? kNoNode : each));
    }
  }
  table.clear();
  CHECK(table.size() == 0);
  for (const auto& [node, hash] : present) CHECK(find(table, hash, node) == kNoNode);
}

}  // namespace
}  // namespace incipit::test
