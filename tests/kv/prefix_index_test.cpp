// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_index.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fake_sequence.h"
#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::kNoNode;
using kv::NodeId;
using kv::PrefixIndex;
using kv::token_block;

NodeId add(PrefixIndex& index, NodeId parent, std::uint64_t hash, const Tokens& block,
           kv::BlockId id) {
  index.insert(parent, hash, token_block(block, 0), id);
  return id;
}

/// The same for a block that the index does not have yet.
NodeId add(PrefixIndex& index, NodeId parent, std::uint64_t hash, const Tokens& block) {
  kv::BlockId id = 0;
  while (index.is_used(id)) ++id;
  return add(index, parent, hash, block, id);
}

NodeId find(const PrefixIndex& index, NodeId parent, std::uint64_t hash, const Tokens& block) {
  return index.find(parent, hash, token_block(block, 0));
}

TEST_CASE("a node is found by parent and tokens, whatever its hash") {
  PrefixIndex index(8);
  const NodeId root = index.make_root("n");
  const NodeId a = add(index, root, 1, ids(16), 4);
  const NodeId b = add(index, root, 1, ids(16, 1), 7);
  const NodeId aa = add(index, a, 1, ids(16), 0);  // the same tokens once more
  CHECK(find(index, root, 1, ids(16)) == a);
  CHECK(find(index, root, 1, ids(16, 1)) == b);
  CHECK(find(index, a, 1, ids(16)) == aa);
  CHECK(find(index, b, 1, ids(16)) == kNoNode);
  CHECK(find(index, root, 1, ids(16, 2)) == kNoNode);
  for (std::size_t i = 0; i < 16; ++i) {  // each token counts
    Tokens other = ids(16);
    other[i] ^= 1 << 30;
    CHECK(find(index, root, 1, other) == kNoNode);
  }
  CHECK(index.parent(aa) == a);
  CHECK(index.hash(aa) == 1);
  CHECK(std::ranges::equal(index.tokens(b), ids(16, 1)));
  CHECK(index.is_leaf(aa));
  CHECK_FALSE(index.is_leaf(a));
  CHECK(index.first_child(root) == b);  // the youngest
  CHECK(index.next_sibling(b) == a);
  CHECK(index.next_sibling(a) == kNoNode);
  CHECK(index.is_root(index.parent(a)));
  CHECK(index.size() == 3);
  index.check_integrity();
}

TEST_CASE("only leaves can be removed") {
  PrefixIndex index(2);
  const NodeId root = index.make_root("n");
  const NodeId a = add(index, root, 1, ids(16), 0);
  const NodeId b = add(index, a, 2, ids(16), 1);
  CHECK_THROWS_AS(index.remove(a), Error);
  CHECK_THROWS_AS(add(index, b, 3, ids(16), 0), Error);  // the block is a node already
  index.remove(b);
  CHECK_THROWS_AS(index.remove(b), Error);
  CHECK(find(index, a, 2, ids(16)) == kNoNode);
  index.remove(a);
  CHECK(index.size() == 0);
  index.check_integrity();
}

TEST_CASE("siblings can be removed in any order") {
  std::vector<std::size_t> order{0, 1, 2};
  do {
    PrefixIndex index(3);
    const NodeId root = index.make_root("n");
    std::vector<NodeId> nodes;
    for (TokenId i = 0; i < 3; ++i) nodes.push_back(add(index, root, 5, ids(16, i)));
    for (const std::size_t i : order) {
      index.remove(nodes[i]);
      index.check_integrity();
      CHECK_FALSE(index.is_used(nodes[i]));
    }
    CHECK(index.name_spaces() == 0);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("a namespace goes with its last node and leaves nothing behind") {
  PrefixIndex index(4);
  for (int i = 0; i < 100; ++i) {
    const NodeId root = index.make_root("tenant " + std::to_string(i));
    const NodeId node = add(index, root, 1, ids(16));
    CHECK(index.name_spaces() == 1);
    CHECK(index.find_root("tenant " + std::to_string(i)) == root);
    CHECK(index.find_root("tenant " + std::to_string(i + 1)) == kNoNode);
    index.remove(node);
    CHECK(index.find_root("tenant " + std::to_string(i)) == kNoNode);
  }
  index.check_integrity();
}

TEST_CASE("namespaces are told apart in full") {
  using namespace std::string_literals;
  PrefixIndex index(8);
  const std::vector<std::string> names{"a", "b", "aa", "a\0"s, "\0a"s, "A"};
  for (const std::string& name : names) {
    const NodeId root = index.make_root(name);
    CHECK(index.make_root(name) == root);
    CHECK(find(index, root, 1, ids(16)) == kNoNode);
    add(index, root, 1, ids(16));
  }
  CHECK(index.name_spaces() == names.size());
  index.check_integrity();
}

TEST_CASE("walk() follows a chain as far as it is known") {
  PrefixIndex index(100);
  const Tokens tokens = ids(16 * 40);
  std::vector<std::uint64_t> hashes(40, 3);
  std::vector<NodeId> chain;
  NodeId parent = index.make_root("n");
  const NodeId root = parent;
  for (std::size_t i = 0; i < 30; ++i) {
    const auto block = static_cast<kv::BlockId>(3 * i);
    index.insert(parent, hashes[i], token_block(tokens, i), block);
    chain.push_back(parent = block);
  }
  std::vector<NodeId> path;
  index.walk(root, hashes, tokens, path);
  CHECK(path == chain);
  path.clear();
  index.walk(root, std::span(hashes).first(4), tokens, path);
  CHECK(path == std::vector<NodeId>(chain.begin(), chain.begin() + 4));
  path.clear();
  index.walk(root, {}, tokens, path);
  CHECK(path.empty());
  hashes[10] = 4;  // what follows is not looked at
  index.walk(root, hashes, tokens, path);
  CHECK(path.size() == 10);
}

TEST_CASE("longest_run() finds the child with the longest common front") {
  PrefixIndex index(8);
  const NodeId root = index.make_root("n");
  const NodeId three = add(index, root, 1, ids(3) + ids(13, 100));
  const NodeId nine = add(index, root, 2, ids(9) + ids(7, 200));
  add(index, root, 3, ids(16, 500));
  const auto run = [&](const Tokens& tokens) { return index.longest_run(root, tokens); };
  CHECK(run(ids(20)).node == nine);
  CHECK(run(ids(20)).tokens == 9);
  CHECK(run(ids(5)).tokens == 5);
  CHECK(run(ids(5)).node == nine);
  CHECK(run(ids(3) + ids(30, 100)).node == three);
  CHECK(run(ids(3) + ids(30, 100)).tokens == 16);
  CHECK(run(ids(2)).node == nine);  // a tie: the youngest
  CHECK(run({}).tokens == 0);
  CHECK(run(ids(5, 7)).tokens == 0);
  CHECK(run(ids(5, 7)).node == kNoNode);
  CHECK(index.longest_run(nine, ids(16)).tokens == 0);
}

TEST_CASE("longest_run() looks at a bounded number of siblings") {
  PrefixIndex index(1000);
  const NodeId root = index.make_root("n");
  add(index, root, 0, ids(16));
  const auto add_stranger = [&](TokenId i) {
    add(index, root, static_cast<std::uint64_t>(i), ids(16, 1000 + i));
  };
  TokenId i = 1;
  for (; i < static_cast<TokenId>(PrefixIndex::kMaxSiblings); ++i) add_stranger(i);
  CHECK(index.longest_run(root, ids(10)).tokens == 10);
  add_stranger(i);
  CHECK(index.longest_run(root, ids(10)).tokens == 0);
}

TEST_CASE("clear() forgets all, and the index works on") {
  PrefixIndex index(3);
  for (int round = 0; round < 3; ++round) {
    const NodeId root = index.make_root("n");
    const NodeId a = add(index, root, 1, ids(16));
    add(index, a, 2, ids(16));
    add(index, index.make_root("m"), 1, ids(16));
    CHECK(index.size() == 3);
    index.clear();
    CHECK(index.size() == 0);
    CHECK(index.name_spaces() == 0);
    CHECK(index.find_root("n") == kNoNode);
    index.check_integrity();
  }
}

}  // namespace
}  // namespace incipit::test
