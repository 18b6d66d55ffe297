// SPDX-License-Identifier: Apache-2.0
#include "kv/cold_tiers.h"

#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>

#include "store/fake_store.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "tier_node.h"

// What is stored is found again, by whom it may be, wherever it went.

namespace incipit::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A prompt with nothing in common with the others: `blocks` blocks and some tokens.
Tokens prompt(int number, std::size_t blocks = 3) { return ids(16 * blocks + 4, 1000 * number); }

CacheLabels salted(std::string salt, std::string version = "") {
  return {.salt = std::move(salt), .version = std::move(version)};
}
CacheLabels in_session(std::string session) { return {.session = std::move(session)}; }
CacheLabels tagged(std::vector<std::string> tags) { return {.tags = std::move(tags)}; }

bool all_found(const Served& served, const Tokens& tokens) {
  return served.intact && served.found() == (tokens.size() - 1) / 16 * 16;
}

TEST_CASE("what was computed is found after a restart") {
  const TemporaryDirectory directory;
  const bool encrypted = GENERATE(false, true);
  const auto options = [&] {
    PrefixCacheOptions made = with_tier(make_directory_store({.directory = directory.path()}));
    if (encrypted) made.encryption_key = [](std::uint32_t) { return ByteVector(32); };
    return made;
  };
  const std::vector<std::size_t> lengths = {1, 2, 63, 64, 65, 150};
  {
    TierNode node(options());
    for (const std::size_t blocks : lengths) {
      const Served served = node.serve(prompt(static_cast<int>(blocks), blocks));
      CHECK(served.found() == 0);
      CHECK(served.intact);
      REQUIRE(node.flush());
    }
  }
  TierNode node(options());
  for (const std::size_t blocks : lengths) {
    const Tokens tokens = prompt(static_cast<int>(blocks), blocks);
    const Served loaded = node.serve(tokens);
    CHECK(loaded.from_tiers == blocks * 16);
    CHECK(loaded.intact);
    const Served again = node.serve(tokens);
    CHECK(again.in_memory == blocks * 16);
    CHECK(again.intact);
  }
  const CacheStats stats = node.registry().stats();
  REQUIRE(stats.tiers.size() == 1);
  CHECK(stats.tiers[0].tokens_reused == 16 * (1 + 2 + 63 + 64 + 65 + 150));
  CHECK(stats.tiers[0].rejected == 0);
}

TEST_CASE("a prompt that goes on is found up to where it differs") {
  const auto store = std::make_shared<FaultyStore>();
  {
    TierNode node(with_tier(store));
    node.serve(prompt(1, 70));
    node.serve(ids(16 * 66, 1000) + ids(16 * 10, 5000));
    REQUIRE(node.flush());
  }
  TierNode node(with_tier(store));
  CHECK(node.look(ids(16 * 70, 1000) + ids(500, 9000)).from_tiers == 16 * 70);
  CHECK(node.look(ids(16 * 66, 1000) + ids(16 * 10 + 1, 5000)).from_tiers == 16 * 76);
  CHECK(node.look(ids(16 * 30 + 8, 1000) + ids(500, 9000)).from_tiers == 16 * 30);
  CHECK(node.look(ids(16 * 30, 1001)).from_tiers == 0);
  // What memory has is not loaded.
  const Tokens front = ids(16 * 20 + 1, 1000);
  CHECK(node.serve(front).from_tiers == 16 * 20);
  const Served rest = node.serve(ids(16 * 70 + 1, 1000));
  CHECK(rest.in_memory >= 16 * 20);
  CHECK(rest.found() == 16 * 70);
  CHECK(rest.intact);
}

TEST_CASE("equal salts and versions share in every tier, and no others") {
  PrefixCacheOptions options;
  for (int i = 0; i < 3; ++i) options.tiers.push_back({.store = std::make_shared<FaultyStore>()});
  if (GENERATE(false, true)) {
    options.encryption_key = [](std::uint32_t) { return ByteVector(32, std::byte{1}); };
  }
  const Tokens tokens = prompt(1);
  const std::vector<CacheLabels> labels = {salted(""),       salted("a"),      salted("b"),
                                           salted("a", "1"), salted("a", "2"), salted("a1"),
                                           salted("", "a"),  salted("b", "1")};
  for (const CacheLabels& writer : labels) {
    for (const Tier& tier : options.tiers) static_cast<FaultyStore&>(*tier.store).clear();
    TierNode node(options);
    node.serve(tokens, writer);
    REQUIRE(node.flush());
    std::vector<std::unique_ptr<TierNode>> restarted;
    for (const Tier& tier : options.tiers) {
      PrefixCacheOptions one = options;
      one.tiers = {tier};
      restarted.push_back(std::make_unique<TierNode>(one));
    }
    for (const CacheLabels& reader : labels) {
      const bool same = &reader == &writer;
      CHECK(node.look(tokens, reader).in_memory == (same ? 48 : 0));
      for (const auto& other : restarted) {
        const Served served = other->look(tokens, reader);
        CHECK(served.from_tiers == (same ? 48 : 0));
        CHECK(served.intact);
      }
    }
  }
}

TEST_CASE("another key, or another epoch of it, finds nothing") {
  const auto store = std::make_shared<FaultyStore>();
  const auto options = [&](std::byte key, std::uint32_t epoch) {
    PrefixCacheOptions made = with_tier(store);
    made.encryption_key = [key](std::uint32_t) { return ByteVector(32, key); };
    made.key_epoch = epoch;
    return made;
  };
  {
    TierNode node(options(std::byte{1}, 1));
    node.serve(prompt(1));
    REQUIRE(node.flush());
  }
  CHECK(TierNode(options(std::byte{2}, 1)).look(prompt(1)).found() == 0);
  CHECK(TierNode(options(std::byte{1}, 2)).look(prompt(1)).found() == 0);
  CHECK(TierNode(with_tier(store)).look(prompt(1)).found() == 0);
  CHECK(all_found(TierNode(options(std::byte{1}, 1)).look(prompt(1)), prompt(1)));
}

TEST_CASE("on second hit, what comes once is not stored") {
  const auto store = std::make_shared<FaultyStore>();
  const auto options = with_tier(store, WritePolicy::kSecondHit);
  TierNode node(options);
  node.serve(prompt(1));
  node.serve(prompt(2));
  REQUIRE(node.flush());
  CHECK(TierNode(options).look(prompt(1)).found() == 0);
  node.serve(prompt(1));
  REQUIRE(node.flush());
  CHECK(all_found(TierNode(options).look(prompt(1)), prompt(1)));
  CHECK(TierNode(options).look(prompt(2)).found() == 0);
}

TEST_CASE("what is stored is not stored twice") {
  const auto store = std::make_shared<FaultyStore>();
  TierNode node(with_tier(store));
  node.serve(prompt(1));
  REQUIRE(node.flush());
  const std::uint64_t puts = store->puts();
  for (int i = 0; i < 3; ++i) node.serve(prompt(1));
  REQUIRE(node.flush());
  CHECK(store->puts() == puts);
  // Nor what was loaded.
  TierNode other(with_tier(store));
  CHECK(other.serve(prompt(1)).from_tiers == 48);
  REQUIRE(other.flush());
  CHECK(store->puts() == puts);
}

TEST_CASE("on eviction, all that leaves the pool is found in the tier") {
  const auto store = std::make_shared<FaultyStore>();
  const FakeClock clock;
  TierNode node(with_tier(store, WritePolicy::kOnEviction), clock, 100);
  // 120 markers, more than the pool holds: none may ever appear in another prompt.
  constexpr int kPrompts = 120;
  int lost = 0, damaged = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kPrompts; ++i) {
      const int number = 1 + (round == 0 ? i : i * 37 % kPrompts);
      const Served served = node.serve(prompt(number));
      if (!served.intact) ++damaged;
      if (round > 0 && !all_found(served, prompt(number))) ++lost;
      node.flush();
    }
  }
  CHECK(damaged == 0);
  CHECK(lost == 0);
  CHECK(node.registry().stats().tiers[0].tokens_reused > 0);
  CHECK(node.cache().stats().blocks_cached <= 95);
  node.cache().check_integrity();
}

TEST_CASE("cold sessions move to the tier, hot ones stay") {
  const auto store = std::make_shared<FaultyStore>();
  PrefixCacheOptions options = with_tier(store, WritePolicy::kOnEviction);
  options.hot_sessions = 2;
  TierNode node(options);
  for (int i = 1; i <= 4; ++i) {
    node.serve(prompt(i), in_session(std::to_string(i)));
    REQUIRE(node.flush());
  }
  for (int i = 1; i <= 4; ++i) {
    const Served served = node.look(prompt(i), in_session(std::to_string(i)));
    CHECK(all_found(served, prompt(i)));
    CHECK(served.in_memory == (i > 2 ? 48 : 0));
  }
}

/// The lives of all extents and pointers in a store that has no key. Seconds; 0: for ever.
std::set<std::int64_t> lives(const FaultyStore& store) {
  std::set<std::int64_t> lives;
  for (const auto& [name, record] : store.values()) {
    kv::RecordKind kind;
    std::int64_t created = 0, expires = 0;
    std::memcpy(&kind, record.data() + 12, sizeof(kind));
    std::memcpy(&created, record.data() + 88, sizeof(created));
    std::memcpy(&expires, record.data() + 96, sizeof(expires));
    if (kind != kv::RecordKind::kEpoch) lives.insert(expires == 0 ? 0 : expires - created);
  }
  return lives;
}

TEST_CASE("what is stored lives no longer than its request allowed, whenever it is stored") {
  const auto store = std::make_shared<FaultyStore>();
  const bool evicted = GENERATE(false, true);
  PrefixCacheOptions options =
      with_tier(store, evicted ? WritePolicy::kOnEviction : WritePolicy::kThrough);
  options.hot_sessions = 1;
  TierNode node(options);
  CacheLabels labels = in_session("a");
  labels.time_to_live = seconds(1000);
  node.serve(prompt(1), labels);
  REQUIRE(node.flush());
  if (evicted) {
    CHECK(lives(*store).empty());
    node.serve(prompt(2), in_session("b"));
    REQUIRE(node.flush());
  }
  const std::set<std::int64_t> found = lives(*store);
  REQUIRE_FALSE(found.empty());
  CHECK(*found.begin() > 900);
  CHECK(*found.rbegin() <= 1000);
}

TEST_CASE("the cache's own time to live is that of the tiers as well") {
  const auto store = std::make_shared<FaultyStore>();
  PrefixCacheOptions options = with_tier(store);
  options.time_to_live = seconds(GENERATE(0, 500));
  TierNode node(options);
  node.serve(prompt(1));
  REQUIRE(node.flush());
  const std::set<std::int64_t> found = lives(*store);
  REQUIRE_FALSE(found.empty());
  if (options.time_to_live.count() == 0) {
    CHECK(found == std::set<std::int64_t>{0});
  } else {
    CHECK(*found.begin() > 400);
    CHECK(*found.rbegin() <= 500);
  }
}

TEST_CASE("what one tier has lost comes from the next, and goes back to the first") {
  const auto fast = std::make_shared<FaultyStore>(), slow = std::make_shared<FaultyStore>();
  PrefixCacheOptions options = with_tier(fast);
  options.tiers.push_back({.store = slow});
  {
    TierNode node(options);
    node.serve(prompt(1));
    REQUIRE(node.flush());
  }
  fast->clear();
  {
    TierNode node(options);
    CHECK(node.serve(prompt(1)).from_tiers == 48);
    REQUIRE(node.flush());
    const auto tiers = node.registry().stats().tiers;
    CHECK(tiers[0].tokens_reused == 0);
    CHECK(tiers[1].tokens_reused == 48);
  }
  CHECK(all_found(TierNode(with_tier(fast)).look(prompt(1)), prompt(1)));
}

TEST_CASE("a tier that was away is given again what it may have lost") {
  const auto store = std::make_shared<FaultyStore>();
  FakeClock clock;
  TierNode node(with_tier(store), clock);
  node.serve(prompt(1));
  REQUIRE(node.flush());
  store->set({.down = true});
  clock.move(2);
  for (int i = 2; i <= 6; ++i) CHECK(node.serve(prompt(i)).intact);
  REQUIRE(node.flush());
  store->clear();
  store->set({});
  clock.move(600);
  node.serve(prompt(1));
  REQUIRE(node.flush());
  node.serve(prompt(1));  // its epochs are new as well, so memory may have forgotten it
  REQUIRE(node.flush());
  CHECK(all_found(TierNode(with_tier(store)).look(prompt(1)), prompt(1)));
}

TEST_CASE("damage of everything costs time and nothing else") {
  const auto store = std::make_shared<FaultyStore>();
  const int kind = GENERATE(0, 1, 2, 3);
  {
    TierNode node(with_tier(store));
    for (int i = 1; i <= 5; ++i) node.serve(prompt(i));
    REQUIRE(node.flush());
  }
  const FaultyStore::Values values = store->values();
  for (auto it = values.begin(); it != values.end(); ++it) {
    FaultyStore::Value record = it->second;
    if (kind == 0) record[record.size() / 2] ^= std::byte{1};
    if (kind == 1) record.resize(record.size() / 2);
    if (kind == 2) record.clear();
    if (kind == 3)
      record = (std::next(it) == values.end() ? values.begin() : std::next(it))->second;
    store->set_value({it->first}, record);
  }
  TierNode node(with_tier(store));
  for (int i = 1; i <= 5; ++i) {
    const Served served = node.serve(prompt(i));
    CHECK(served.found() == 0);
    CHECK(served.intact);
  }
  CHECK(node.registry().stats().tiers[0].rejected > 0);
  REQUIRE(node.flush());
  TierNode after(with_tier(store));
  for (int i = 1; i <= 5; ++i) CHECK(all_found(after.look(prompt(i)), prompt(i)));
}

TEST_CASE("whatever a store does wrong, every request gets the right KV") {
  const int kind = GENERATE(range(0, 8));
  int damaged = 0;
  for (unsigned every = 1; every <= 7; ++every) {
    StoreFaults faults;
    unsigned* const of_kind[] = {&faults.fail_every,     &faults.throw_every,   &faults.lose_every,
                                 &faults.drop_every,     &faults.corrupt_every, &faults.swap_every,
                                 &faults.truncate_every, &faults.extend_every};
    *of_kind[kind] = every;
    const auto store = std::make_shared<FaultyStore>(faults);
    FakeClock clock;
    for (int restart = 0; restart < 3; ++restart) {
      TierNode node(with_tier(store), clock, 20);
      for (int i = 0; i < 12; ++i) {
        const Served served = node.serve(prompt(1 + i % 8), in_session(std::to_string(i % 3)));
        if (!served.intact || served.refused) ++damaged;
        clock.move_milliseconds(400);
      }
      node.flush();
      node.cache().check_integrity();
    }
  }
  CHECK(damaged == 0);
}

TEST_CASE("blocks that wait to be stored are given back") {
  const auto store = std::make_shared<FaultyStore>();
  TierNode node(with_tier(store));
  const Tokens tokens = prompt(1);
  {
    FakeSequence sequence(node.device(), node.cache(), TierNode::name_space({}));
    REQUIRE(sequence.start(tokens));
    sequence.compute();
    sequence.commit();
    const auto ticket = node.registry().begin_request(sequence.name_space(), {});
    store->set({.delay = milliseconds(40)});
    for (int i = 0; i < 200; ++i) {
      node.tiers().store(node.cache(), node.device(), node.cache().share(sequence.table(), 3),
                         ticket);
    }
  }
  CHECK(node.cache().stats().blocks_in_use == 3);
  CHECK_FALSE(node.tiers().flush(milliseconds(1)));
  SECTION("when the cache needs them") {
    node.tiers().leave(node.cache());
    CHECK(node.cache().stats().blocks_in_use == 0);
    CHECK(node.tiers().flush(milliseconds(0)));
  }
  SECTION("when they are stored") {
    store->set({});
    CHECK(node.flush());
    CHECK(node.cache().stats().blocks_in_use == 0);
    CHECK(all_found(TierNode(with_tier(store)).look(tokens), tokens));
  }
  SECTION("when the cache goes") {}
}

TEST_CASE("a cache that leaves does not wait for all pointers of an extent") {
  const auto store = std::make_shared<FaultyStore>();
  TierNode node(with_tier(store));
  node.serve(prompt(1, 1));  // makes the epochs
  REQUIRE(node.flush());
  const std::uint64_t before = store->puts();
  store->set({.delay = milliseconds(5)});
  node.serve(prompt(2, 64));  // an extent and 64 pointers
  while (store->puts() < before + 2) std::this_thread::yield();
  const std::uint64_t puts = store->puts();
  node.tiers().leave(node.cache());
  CHECK(store->puts() <= puts + 5);
  CHECK(node.cache().stats().blocks_in_use == 0);
}

TEST_CASE("what a cache leaves behind is stored before it goes") {
  const auto store = std::make_shared<FaultyStore>();
  { TierNode(with_tier(store)).serve(prompt(1, 80)); }
  CHECK(all_found(TierNode(with_tier(store)).look(prompt(1, 80)), prompt(1, 80)));
}

TEST_CASE("a store that hangs holds nobody up for longer than its deadline") {
  const auto store = std::make_shared<FaultyStore>(StoreFaults{.hang = true});
  PrefixCacheOptions options = with_tier(store);
  options.tiers[0].deadline = options.tiers[0].write_deadline = milliseconds(20);
  const auto registry = std::make_shared<kv::CacheRegistry>(options);
  std::uint64_t calls = 0;
  for (int i = 0; i < 3; ++i) {
    const CacheLabels labels = registry->cache_labels(in_session("s"));
    CHECK(registry->begin_request("n", labels) != nullptr);
    if (i == 0) calls = store->calls();
  }
  CHECK(calls == 1);
  CHECK(store->calls() <= 2);  // and one to see whether it is back
}

TEST_CASE("tags that a request brings to what it loads are stored with it") {
  const auto store = std::make_shared<FaultyStore>();
  {
    TierNode node(with_tier(store));
    node.serve(prompt(1));
    REQUIRE(node.flush());
  }
  TierNode node(with_tier(store));
  CHECK(node.serve(prompt(1), tagged({"t"})).from_tiers == 48);
  REQUIRE(node.flush());
  CHECK(node.registry().invalidate_tag("t").complete());
  CHECK(node.look(prompt(1)).found() == 0);
  CHECK(TierNode(with_tier(store)).look(prompt(1)).found() == 0);
}

}  // namespace
}  // namespace incipit::test
