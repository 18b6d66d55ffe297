// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "incipit/error.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// Second holders of blocks: share(), fork(), and siblings.

namespace incipit::test {
namespace {

using kv::BlockTable;
using kv::KvCache;

struct Setup {
  explicit Setup(std::size_t blocks)
      : cache(device, tiny_layout(), {.blocks = blocks, .poison_freed_blocks = true}) {}

  FakeSequence computed(const Tokens& prompt, std::size_t more = 0,
                        const std::string& name_space = "n") {
    FakeSequence sequence(device, cache, name_space);
    REQUIRE(sequence.start(prompt, more));
    sequence.compute();
    return sequence;
  }
  FakeSequence child() { return FakeSequence(device, cache, "n"); }
  std::size_t in_use() const { return cache.stats().blocks_in_use; }

  FakeDevice device;
  KvCache cache;
};

TEST_CASE("share() holds the front of a table beyond the table's life") {
  Setup setup(4);
  FakeSequence sequence = setup.computed(ids(40));
  sequence.commit();
  BlockTable front = setup.cache.share(sequence.table(), 1);
  CHECK(front.blocks().size() == 1);
  CHECK(front.committed() == 1);
  CHECK(front.blocks()[0] == sequence.table().blocks()[0]);
  CHECK(setup.in_use() == 3);
  setup.cache.check_integrity();
  sequence.drop();
  CHECK(setup.in_use() == 1);
  // The pool's other three blocks go to somebody else; this one does not.
  setup.computed(ids(48, 500)).commit();
  setup.cache.check_integrity();
  CHECK(setup.computed(ids(17)).reused() == 16);
  const BlockTable none = setup.cache.share(front, 0);
  CHECK(none.blocks().empty());
  CHECK_THROWS_AS(setup.cache.share(front, 2), Error);
  front = {};
  CHECK(setup.in_use() == 0);
  setup.cache.check_integrity();
}

TEST_CASE("a shared front can be continued by a fork of it") {
  Setup setup(6);
  FakeSequence sequence = setup.computed(ids(40));
  sequence.commit();
  const BlockTable front = setup.cache.share(sequence.table(), 1);
  BlockTable child;
  REQUIRE(setup.cache.fork(front, 16, 48, child));
  setup.cache.extend(child, 32);
  setup.cache.commit(child, ids(16) + ids(16, 900));
  CHECK(child.committed() == 2);
  sequence.drop();
  child = {};
  KvCache::Match match;
  REQUIRE(setup.cache.start("n", ids(16) + ids(17, 900), 33, match));
  CHECK(match.tokens == 32);
  setup.cache.check_integrity();
}

TEST_CASE("a fork shares full blocks and copies the front of one more") {
  for (const std::size_t length : {1u, 15u, 16u, 17u, 31u, 32u, 33u, 48u}) {
    CAPTURE(length);
    Setup setup(12);
    FakeSequence parent = setup.computed(ids(length), 20);
    FakeSequence child = setup.child();
    REQUIRE(parent.fork(child, 20));
    CHECK(child.intact());
    const std::size_t full = length / 16;
    REQUIRE(child.table().committed() == full);
    CHECK(child.table().blocks().size() == (length + 15) / 16);
    for (std::size_t i = 0; i < full; ++i) {
      CHECK(child.table().blocks()[i] == parent.table().blocks()[i]);
    }
    if (length % 16 != 0) CHECK(child.table().blocks()[full] != parent.table().blocks()[full]);
    setup.cache.check_integrity();
    for (TokenId i = 0; i < 20; ++i) {
      parent.generate(1000 + i);
      child.generate(2000 + i);
      parent.compute();
      child.compute();
      parent.commit();
      child.commit();
    }
    CHECK(parent.intact());
    CHECK(child.intact());
    parent.drop();
    CHECK(child.intact());
    child.drop();
    CHECK(setup.in_use() == 0);
    setup.cache.check_integrity();
  }
}

TEST_CASE("many forks cost one block each, and equal ones are merged at commit") {
  Setup setup(24);
  FakeSequence parent = setup.computed(ids(40));
  std::vector<FakeSequence> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(setup.child());
    REQUIRE(parent.fork(children.back(), 24));
  }
  CHECK(setup.in_use() == 3 + 8);
  parent.drop();
  CHECK(setup.in_use() == 2 + 8);
  for (int i = 0; i < 8; ++i) {
    for (TokenId token = 0; token < 8; ++token) {
      children[static_cast<std::size_t>(i)].generate(token + (i % 2) * 100);
    }
  }
  for (FakeSequence& child : children) {
    child.compute();
    child.commit();
    CHECK(child.intact());
    setup.cache.check_integrity();
  }
  CHECK(setup.in_use() == 2 + 2);
  CHECK(setup.cache.stats().blocks_cached == 4);
  children.clear();
  CHECK(setup.in_use() == 0);
}

TEST_CASE("forks of forks are independent of who ends first") {
  Setup setup(20);
  std::vector<FakeSequence> all;
  all.push_back(setup.computed(ids(20), 40));
  for (int i = 0; i < 4; ++i) {
    FakeSequence next = setup.child();
    REQUIRE(all.back().fork(next, 10));
    for (TokenId token = 0; token < 10; ++token) next.generate(100 * (i + 1) + token);
    next.compute();
    all.push_back(std::move(next));
  }
  while (!all.empty()) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2));
    for (const FakeSequence& left : all) CHECK(left.intact());
    setup.cache.check_integrity();
  }
  CHECK(setup.in_use() == 0);
}

TEST_CASE("a fork that has no room changes nothing") {
  Setup setup(5);
  FakeSequence parent = setup.computed(ids(40), 8);
  FakeSequence child = setup.child();
  CHECK_FALSE(parent.fork(child, 40));  // 2 shared and 3 of its own, where 2 are left
  CHECK(child.table().blocks().empty());
  CHECK_FALSE(parent.fork(child, 1000));
  CHECK(setup.in_use() == 3);
  setup.cache.check_integrity();
  REQUIRE(parent.fork(child, 24));
  FakeSequence more = setup.child();
  CHECK_FALSE(parent.fork(more, 0));
  setup.cache.check_integrity();
}

TEST_CASE("full blocks that could still be committed are not shared") {
  Setup setup(8);
  const FakeSequence parent = setup.computed(ids(40));
  BlockTable child;
  CHECK_THROWS_AS(setup.cache.fork(parent.table(), 40, 48, child), Error);
  CHECK_THROWS_AS(setup.cache.fork(parent.table(), 49, 64, child), Error);
  CHECK_THROWS_AS(setup.cache.fork(parent.table(), 16, 15, child), Error);
  CHECK(setup.in_use() == 3);
  setup.cache.check_integrity();
  CHECK(setup.cache.fork(parent.table(), 10, 16, child));  // a part of one is copied
}

TEST_CASE("sequences without a namespace, or cut off, fork like others") {
  const bool cut = GENERATE(false, true);
  Setup setup(12);
  FakeSequence parent = setup.computed(ids(40), 0, cut ? "n" : "");
  if (cut) setup.cache.clear();
  FakeSequence child = setup.child();
  REQUIRE(parent.fork(child, 30));
  CHECK(child.table().committed() == 0);
  CHECK(setup.in_use() == 4);
  parent.drop();
  CHECK(child.intact());
  for (TokenId i = 0; i < 30; ++i) child.generate(i);
  child.compute();
  child.commit();
  CHECK(child.intact());
  CHECK(setup.cache.stats().blocks_cached == 0);
  child.drop();
  CHECK(setup.in_use() == 0);
  setup.cache.check_integrity();
}

TEST_CASE("a device that fails to copy leaves no fork") {
  Setup setup(8);
  FakeSequence parent = setup.computed(ids(20));
  parent.commit();
  setup.device.fail_copies = true;
  FakeSequence child = setup.child();
  CHECK_THROWS_AS(parent.fork(child, 4), std::runtime_error);
  CHECK(setup.in_use() == 2);
  setup.cache.check_integrity();
  setup.device.fail_copies = false;
  CHECK(parent.fork(child, 4));
  CHECK(child.intact());
}

TEST_CASE("a prompt gets a copy of the block that its sibling is about to fill") {
  Setup setup(12);
  FakeSequence first = setup.computed(ids(40), 8);
  first.commit();
  const Tokens prompt = ids(40) + ids(5, 900);
  const auto start = [&](const std::string& name_space, std::size_t computed) {
    KvCache::StartOptions options;
    options.sibling = &first.table();
    options.sibling_tokens = computed;
    KvCache::Match match;
    REQUIRE(setup.cache.start(name_space, {}, prompt, prompt.size(), match, options));
    return match;
  };
  {
    const KvCache::Match second = start("n", 40);
    CHECK(second.tokens == 40);
    REQUIRE(second.table.blocks().size() == 3);
    const auto ours = second.table.blocks(), theirs = first.table().blocks();
    CHECK(std::equal(ours.begin(), ours.begin() + 2, theirs.begin()));
    REQUIRE(ours[2] != theirs[2]);
    const device::KvPoolView& pool = setup.cache.pool();
    CHECK(std::memcmp(pool.block(ours[2]), pool.block(theirs[2]), pool.layout.block_bytes()) == 0);
    setup.cache.check_integrity();
  }
  CHECK(start("n", 35).tokens == 35);
  CHECK(start("n", 32).tokens == 32);  // whole blocks are found anyway
  CHECK(start("other", 40).tokens == 0);
  setup.cache.invalidate_name_space("n");
  CHECK(start("n", 40).tokens == 0);
  setup.cache.check_integrity();
}

}  // namespace
}  // namespace incipit::test
