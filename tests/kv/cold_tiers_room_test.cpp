// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>

#include "kv/cold_tiers.h"
#include "store/fake_store.h"
#include "support/catch.h"
#include "tier_node.h"

// What leaves the pool for tiers that are written on eviction.

namespace incipit::test {
namespace {

constexpr std::size_t kPool = 100;

/// A prompt with nothing in common with the others: `blocks` blocks and some tokens.
Tokens prompt(int number, std::size_t blocks) { return ids(16 * blocks + 4, 1000 * number); }

std::size_t whole_blocks(const Tokens& tokens) { return (tokens.size() - 1) / 16 * 16; }

TEST_CASE("prompts that take a large part of the pool are stored before they make room") {
  const std::size_t blocks = GENERATE(std::size_t{12}, std::size_t{25}, std::size_t{45});
  const auto store = std::make_shared<FaultyStore>();
  const FakeClock clock;
  TierNode node(with_tier(store, WritePolicy::kOnEviction), clock, kPool);
  constexpr int kPrompts = 12;
  // What requests take is known once one of them has taken it.
  for (int i = 1; i <= kPrompts; ++i) {
    node.serve(prompt(i, blocks));
    REQUIRE(node.flush());
  }
  int lost = 0;
  for (int i = 1; i <= kPrompts; ++i) {
    const Served served = node.look(prompt(i, blocks));
    CHECK(served.intact);
    if (served.found() != whole_blocks(prompt(i, blocks))) ++lost;
  }
  CHECK(lost == 0);
  node.cache().check_integrity();
}

TEST_CASE("large prompts leave the pool no emptier than the next one needs") {
  const auto store = std::make_shared<FaultyStore>();
  const FakeClock clock;
  TierNode node(with_tier(store, WritePolicy::kOnEviction), clock, kPool);
  for (int i = 1; i <= 6; ++i) {
    node.serve(prompt(i, 20));
    REQUIRE(node.flush());
  }
  CHECK(node.cache().stats().blocks_cached <= kPool - 20);
  CHECK(node.cache().stats().blocks_cached >= kPool - 20 - 5 - 20);
  // Small ones again: room that nobody takes is given up little by little.
  for (int i = 100; i < 160; ++i) {
    node.serve(prompt(i, 1));
    REQUIRE(node.flush());
  }
  CHECK(node.cache().stats().blocks_cached >= kPool - 5 - 5 - 1);
}

TEST_CASE("what no tier takes stays in the pool until its room is needed, in its order") {
  const auto store = std::make_shared<FaultyStore>();
  PrefixCacheOptions options = with_tier(store, WritePolicy::kOnEviction);
  options.eviction = Eviction::kLru;
  TierNode node(options, FakeClock(), kPool);
  const auto known = [&](int number) {
    return node.cache().known_tokens(TierNode::name_space({}), prompt(number, 9));
  };
  node.serve(prompt(1, 9));
  REQUIRE(node.flush());
  store->set({.down = true});
  for (int i = 2; i <= 12; ++i) {
    node.serve(prompt(i, 9));
    REQUIRE(node.flush());
  }
  CHECK(node.cache().stats().blocks_cached > kPool - 9);
  // The first one has made room, and nobody else.
  CHECK(known(1) == 0);
  for (int i = 2; i <= 12; ++i) CHECK(known(i) == whole_blocks(prompt(i, 9)));
}

TEST_CASE("small pools fill up again, and store what they evict, too") {
  for (const std::size_t pool : {std::size_t{2}, std::size_t{4}, std::size_t{20}}) {
    CAPTURE(pool);
    const auto store = std::make_shared<FaultyStore>();
    TierNode node(with_tier(store, WritePolicy::kOnEviction), FakeClock(), pool);
    node.serve(ids(16 * (pool - 1) + 4, 5));
    REQUIRE(node.flush());
    for (int i = 1; i <= 40; ++i) {
      node.serve(ids(16, 1000 * i));  // one block
      REQUIRE(node.flush());
    }
    CHECK(node.cache().stats().blocks_cached + 3 >= pool);
    const Served served = node.look(ids(17, 1000));
    CHECK(served.intact);
    CHECK(served.found() == 16);
    node.cache().check_integrity();
  }
}

TEST_CASE("of two tiers the one that is up is enough") {
  const auto up = std::make_shared<FaultyStore>(), down = std::make_shared<FaultyStore>();
  PrefixCacheOptions options = with_tier(up, WritePolicy::kOnEviction);
  options.tiers.push_back(with_tier(down, WritePolicy::kOnEviction).tiers.front());
  TierNode node(options, FakeClock(), kPool);
  node.serve(prompt(1, 9));
  REQUIRE(node.flush());
  down->set({.down = true});
  for (int i = 2; i <= 30; ++i) {
    node.serve(prompt(i, 9));
    REQUIRE(node.flush());
  }
  for (int i = 2; i <= 30; ++i) {
    CAPTURE(i);
    CHECK(node.look(prompt(i, 9)).found() == whole_blocks(prompt(i, 9)));
  }
}

}  // namespace
}  // namespace incipit::test
