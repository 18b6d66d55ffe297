// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "incipit/error.h"
#include "store/fake_store.h"
#include "store_with_hook.h"
#include "support/catch.h"
#include "tier_node.h"

// What is forgotten is forgotten everywhere, and stays so.

namespace incipit::test {
namespace {

using kv::CacheRegistry;

const Tokens kVictim = ids(16 * 70 + 4, 1000);     // two extents
const Tokens kBystander = ids(16 * 3 + 4, 50000);  // of somebody else
constexpr std::size_t kAllOfVictim = 16 * 70, kAllOfBystander = 16 * 3;

/// A way to forget, and who has to go by it and who has not.
struct Way {
  std::string name;
  std::function<Invalidation(CacheRegistry&)> forget;
  CacheLabels victim = {};
  CacheLabels bystander = {};
  bool spares_bystander = true;
};

std::vector<Way> all_ways() {
  return {
      {"clear", [](CacheRegistry& all) { return all.clear(); }, {}, {}, false},
      {"tag",
       [](CacheRegistry& all) { return all.invalidate_tag("t"); },
       {.tags = {"s", "t"}},
       {.tags = {"s"}}},
      {"session",
       [](CacheRegistry& all) { return all.invalidate_session("t"); },
       {.session = "t"},
       {.session = "s", .tags = {"t"}}},
      {"owner",
       [](CacheRegistry& all) { return all.invalidate_owner("t"); },
       {.salt = "t", .version = "1"},
       {.salt = "s", .version = "1", .session = "t"}},
      {"version",
       [](CacheRegistry& all) { return all.invalidate_version("t", "1"); },
       {.salt = "t", .version = "1"},
       {.salt = "t", .version = "2"}},
      {"namespace",
       [](CacheRegistry& all) {
         return all.invalidate_name_space(TierNode::name_space({.salt = "t"}));
       },
       {.salt = "t"},
       {.salt = "s"}},
      {"prefix",
       [](CacheRegistry& all) {
         return all.invalidate_prefix(TierNode::name_space({.salt = "t"}),
                                      std::span(kVictim).first(5));
       },
       {.salt = "t"},
       {.salt = "s"}},
  };
}

/// Whether the victim is gone for a node, and the bystander is not.
bool is_done(TierNode& node, const Way& way) {
  const Served victim = node.look(kVictim, way.victim);
  const Served bystander = node.look(kBystander, way.bystander);
  return victim.found() == 0 && victim.intact && bystander.intact &&
         bystander.found() == (way.spares_bystander ? kAllOfBystander : 0);
}

struct TwoNodes {
  explicit TwoNodes(const Way& way, std::shared_ptr<Store> shared) : store(std::move(shared)) {
    for (TierNode* node : {&a, &b}) {
      node->serve(kVictim, way.victim);
      node->serve(kBystander, way.bystander);
      REQUIRE(node->flush());
    }
    REQUIRE(b.registry().stats().tiers[0].tokens_reused == kAllOfVictim + kAllOfBystander);
  }

  std::shared_ptr<Store> store;
  FakeClock clock;
  TierNode a{with_tier(store), clock}, b{with_tier(store), clock};
};

TEST_CASE("what is invalidated is gone from memory and tiers, here, elsewhere and later") {
  for (const Way& way : all_ways()) {
    INFO(way.name);
    TwoNodes two(way, std::make_shared<FaultyStore>());
    CHECK(two.b.look(kVictim, way.victim).in_memory == kAllOfVictim);
    CHECK(way.forget(two.a.registry()).complete());
    CHECK(is_done(two.a, way));
    two.clock.move(1);
    CHECK(is_done(two.b, way));
    TierNode restarted(with_tier(two.store), two.clock);
    CHECK(is_done(restarted, way));

    // It can be stored and shared again.
    two.a.serve(kVictim, way.victim);
    REQUIRE(two.a.flush());
    CHECK(restarted.look(kVictim, way.victim).from_tiers == kAllOfVictim);
    two.a.cache().check_integrity();
    two.b.cache().check_integrity();
  }
}

TEST_CASE("what waits to be stored when it is invalidated does not come back") {
  for (const Way& way : all_ways()) {
    INFO(way.name);
    const auto store = std::make_shared<FaultyStore>();
    TierNode node(with_tier(store));
    for (int round = 0; round < 20; ++round) {
      node.serve(kVictim, way.victim);
      way.forget(node.registry());  // the writer may be anywhere
      REQUIRE(node.flush());
      CHECK(node.look(kVictim, way.victim).found() == 0);
    }
    CHECK(TierNode(with_tier(store)).look(kVictim, way.victim).found() == 0);
  }
}

TEST_CASE("what is stored while a process learns that it was forgotten does not come back") {
  const auto shared = std::make_shared<FaultyStore>();
  const auto hooked = std::make_shared<StoreWithHook>(shared);
  FakeClock clock;
  TierNode a(with_tier(shared), clock), b(with_tier(hooked, WritePolicy::kSecondHit), clock);
  const CacheLabels labels = {.tags = {"t"}};
  b.serve(kBystander, labels);
  REQUIRE(b.flush());
  FakeSequence sequence(b.device(), b.cache(), TierNode::name_space({}));
  const auto ticket = b.registry().begin_request(sequence.name_space(), {});
  REQUIRE(sequence.start(kBystander));  // the second hit: it is to be stored now
  REQUIRE(sequence.reused() == kAllOfBystander);

  CHECK(a.registry().invalidate_tag("t").complete());
  clock.move(1);
  bool stored = false;
  hooked->gets_before = 1;  // the head has told that something was forgotten, and not yet what
  hooked->after_get = [&] {
    b.tiers().store(b.cache(), b.device(), b.cache().share(sequence.table(), 3), ticket);
    stored = b.flush();
  };
  CHECK(b.look(kBystander).found() == 0);
  CHECK(stored);
  CHECK(a.look(kBystander).found() == 0);
}

/// A store that can refuse writes alone.
class ReadOnlyStore final : public Store {
 public:
  std::atomic<bool> read_only = false;

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    return store_.get(key, deadline, value);
  }
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value, std::chrono::seconds life,
                  Deadline deadline) override {
    if (read_only) return StoreStatus::kUnavailable;
    return store_.put(key, value, life, deadline);
  }
  StoreStatus erase(const StoreKey& key, Deadline deadline) override {
    return store_.erase(key, deadline);
  }
  std::string_view name() const noexcept override { return "read-only"; }

 private:
  FaultyStore store_;
};

TEST_CASE("a tier that was not told is told before it is used again") {
  for (const Way& way : all_ways()) {
    INFO(way.name);
    const auto store = std::make_shared<ReadOnlyStore>();
    TwoNodes two(way, store);
    store->read_only = true;
    const Invalidation invalidation = way.forget(two.a.registry());
    CHECK_FALSE(invalidation.complete());
    CHECK(invalidation.unreached == std::vector<std::string>{"read-only"});
    // The tier could be read; it is not.
    const CacheLabels stranger = {.salt = "stranger"};
    CHECK(two.a.look(kVictim, way.victim).found() == 0);
    two.clock.move(1);
    CHECK(two.a.look(kVictim, way.victim).found() == 0);
    CHECK(two.a.serve(kBystander, stranger).found() == 0);

    store->read_only = false;
    two.clock.move(60);
    CHECK(is_done(two.a, way));
    two.clock.move(1);
    CHECK(is_done(two.b, way));
  }
}

TEST_CASE("a request that began before a tier could not be told takes nothing from it") {
  const auto store = std::make_shared<ReadOnlyStore>();
  TierNode node(with_tier(store));
  node.serve(kVictim);
  REQUIRE(node.flush());
  node.cache().clear();  // memory alone
  FakeSequence sequence(node.device(), node.cache(), TierNode::name_space({}));
  const auto ticket = node.registry().begin_request(sequence.name_space(), {});
  REQUIRE(sequence.start(kVictim));
  const auto load = node.tiers().load(*ticket, node.load_options(sequence));
  REQUIRE(load != nullptr);  // it could
  load->cancel();

  store->read_only = true;
  CHECK_FALSE(node.registry().clear().complete());
  CHECK(node.tiers().load(*ticket, node.load_options(sequence)) == nullptr);
}

TEST_CASE("nobody takes the tiers for fresh until memory has forgotten") {
  const auto store = std::make_shared<FaultyStore>();
  FakeClock clock;
  TierNode a(with_tier(store), clock), b(with_tier(store), clock);
  b.serve(kBystander, {.tags = {"t"}});
  REQUIRE(b.flush());
  CHECK(a.registry().invalidate_tag("t").complete());
  clock.move(1);
  std::atomic<bool> second_is_back = false;
  bool too_early = false;
  std::thread second;
  b.tiers().refresh([&](std::span<const kv::ColdTiers::Forgotten>) {
    second = std::thread([&] {
      b.tiers().refresh([](std::span<const kv::ColdTiers::Forgotten>) {});
      second_is_back = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    too_early = second_is_back;
  });
  REQUIRE(second.joinable());  // there was something to forget
  second.join();
  CHECK_FALSE(too_early);
}

TEST_CASE("a tier that is down during an invalidation costs no answer") {
  for (const Way& way : all_ways()) {
    INFO(way.name);
    const auto store = std::make_shared<FaultyStore>();
    TwoNodes two(way, store);
    store->set({.down = true});
    CHECK_FALSE(way.forget(two.a.registry()).complete());
    for (int i = 0; i < 3; ++i) {
      const Served served = two.a.serve(kVictim, way.victim);
      CHECK(served.found() == (i == 0 ? 0 : kAllOfVictim));
      CHECK(served.intact);
      two.clock.move(1);
    }
    store->set({});
    two.clock.move(60);
    CHECK(two.a.look(kVictim, way.victim).intact);
    two.clock.move(1);
    CHECK(is_done(two.b, way));
  }
}

TEST_CASE("a session's blocks stay where others have used them") {
  const auto store = std::make_shared<FaultyStore>();
  FakeClock clock;
  TierNode node(with_tier(store), clock);
  node.serve(kVictim, {.session = "a"});
  node.serve(kVictim, {.session = "b"});
  REQUIRE(node.flush());
  CHECK(node.registry().invalidate_session("a").complete());
  CHECK(node.look(kVictim, {.session = "b"}).in_memory == kAllOfVictim);
  CHECK(TierNode(with_tier(store), clock).look(kVictim).from_tiers == kAllOfVictim);
  CHECK(node.registry().invalidate_session("b").complete());
  CHECK(node.look(kVictim, {.session = "c"}).found() == 0);
  CHECK(TierNode(with_tier(store), clock).look(kVictim).found() == 0);
}

TEST_CASE("labels survive a restart: what was loaded can be forgotten by them") {
  const auto store = std::make_shared<FaultyStore>();
  FakeClock clock;
  {
    TierNode node(with_tier(store), clock);
    node.serve(kVictim, {.session = "s", .tags = {"t", "u"}});
    REQUIRE(node.flush());
  }
  TierNode node(with_tier(store), clock);
  const bool by_tag = GENERATE(false, true);
  const CacheLabels reader = {.session = by_tag ? "r" : "s"};
  CHECK(node.serve(kVictim, reader).from_tiers == kAllOfVictim);
  CHECK(node.look(kVictim, reader).in_memory == kAllOfVictim);
  if (by_tag) {
    node.registry().invalidate_tag("u");
  } else {
    node.registry().invalidate_session("s");
  }
  CHECK(node.look(kVictim, reader).found() == 0);
  REQUIRE(node.flush());
  CHECK(node.look(kVictim, reader).found() == 0);
}

TEST_CASE("tags stay with what was loaded behind blocks that lack them") {
  const auto store = std::make_shared<FaultyStore>();
  FakeClock clock;
  TierNode a(with_tier(store), clock), b(with_tier(store), clock);
  const Tokens front(kVictim.begin(), kVictim.begin() + 16 * 10 + 1);
  b.serve(front);
  b.serve(kBystander, {.tags = {"u"}});
  REQUIRE(b.flush());
  a.serve(kVictim, {.tags = {"t"}});
  REQUIRE(a.flush());
  const Served mixed = b.serve(kVictim);
  CHECK(mixed.in_memory >= 16 * 10);
  CHECK(mixed.found() == kAllOfVictim);
  REQUIRE(b.flush());
  // Because of something else, it stores all of it anew.
  CHECK(a.registry().invalidate_tag("u").complete());
  clock.move(1);
  const std::uint64_t puts = store->puts();
  b.serve(kVictim);
  REQUIRE(b.flush());
  CHECK(store->puts() > puts);

  CHECK(a.registry().invalidate_tag("t").complete());
  CHECK(TierNode(with_tier(store), clock).look(kVictim).found() == 0);
}

/// One owner of a prompt, among others: stores it, forgets it and looks whether it is gone, while a
/// second node loads it at any time.
void store_and_forget(TierNode& node, int number, std::atomic<int>& wrong) {
  const std::string own = std::to_string(number);
  const Tokens tokens = ids(16 * 3 + 2, 1000 * (number + 1));
  for (int round = 0; round < 30; ++round) {
    const int way = (round + number) % 4;
    CacheLabels labels = {.salt = own, .version = std::to_string(round), .session = own};
    labels.tags = {own, "all"};
    for (int i = 0; i < 2; ++i) {
      if (!node.serve(tokens, labels).intact) ++wrong;
    }
    CacheRegistry& all = node.registry();
    const Invalidation done = way == 0   ? all.invalidate_tag(own)
                              : way == 1 ? all.invalidate_session(own)
                              : way == 2 ? all.invalidate_owner(own)
                                         : all.invalidate_version(own, labels.version);
    if (!done.complete()) ++wrong;
    if (node.look(tokens, labels).found() != 0) ++wrong;
    node.tiers().flush(std::chrono::seconds(20));
    if (node.look(tokens, labels).found() != 0) ++wrong;
  }
}

TEST_CASE("invalidations are complete among stores, loads and other nodes") {
  const auto store = std::make_shared<FaultyStore>();
  FakeClock clock;
  TierNode a(with_tier(store), clock, 60), b(with_tier(store), clock, 60);
  constexpr int kOwners = 3;
  std::atomic<int> wrong = 0;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    std::mt19937 random(1);
    while (!done) {
      const int number = static_cast<int>(random() % kOwners);
      const std::string own = std::to_string(number);
      const CacheLabels labels = {.salt = own, .version = std::to_string(random() % 12)};
      if (!b.look(ids(16 * 3 + 2, 1000 * (number + 1)), labels).intact) ++wrong;
      if (!b.serve(ids(16 * 2 + 2, 90000), {.tags = {own}}).intact) ++wrong;
      clock.move_milliseconds(300);
    }
  });
  std::vector<std::thread> owners;
  for (int number = 0; number < kOwners; ++number) {
    owners.emplace_back([&, number] { store_and_forget(a, number, wrong); });
  }
  for (std::thread& owner : owners) owner.join();
  done = true;
  reader.join();
  CHECK(wrong == 0);

  CHECK(a.registry().invalidate_tag("all").complete());
  CHECK(b.registry().clear().complete());
  clock.move(1);
  for (TierNode* node : {&a, &b}) {
    CHECK(node->look(ids(16 * 2 + 2, 90000)).found() == 0);
    node->flush();
    CHECK(node->cache().stats().blocks_in_use == 0);
    node->cache().check_integrity();
  }
}

TEST_CASE("a cache with tiers says what its options lack") {
  PrefixCacheOptions options = with_tier(nullptr);
  CHECK_THROWS_WITH(PrefixCache(options), Catch::Contains("no store"));
  options = with_tier(std::make_shared<FaultyStore>());
  options.tiers.resize(9, options.tiers[0]);
  CHECK_THROWS_WITH(PrefixCache(options), Catch::Contains("9 tiers"));
  options.tiers.resize(8);
  CHECK_NOTHROW(PrefixCache(options));
  options.encryption_key = [](std::uint32_t) { return ByteVector(31); };
  CHECK_THROWS_AS(PrefixCache(options), Error);
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a cache with tiers is of no use in a child of fork, and harmless there") {
  auto cache = std::make_unique<PrefixCache>(with_tier(std::make_shared<FaultyStore>()));
  const std::vector<std::function<void()>> calls = {
      [&] { cache->clear(); }, [&] { cache->invalidate_tag("t"); },
      [&] { cache->flush(std::chrono::seconds(1)); }, [&] { cache->load("no file"); }};
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    for (const auto& call : calls) {
      try {
        call();
        ++wrong;
      } catch (const Error& error) {
        if (error.code() != ErrorCode::kForked) ++wrong;
      }
    }
    cache.reset();  // would wait for threads that the child does not have
    _exit(wrong);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(cache->clear().complete());
}
#endif

TEST_CASE("a cache without an engine invalidates its tiers all the same") {
  const auto store = std::make_shared<FaultyStore>();
  TierNode node(with_tier(store));
  node.serve(kVictim, {.salt = "s", .tags = {"t"}});
  REQUIRE(node.flush());
  PrefixCache cache(with_tier(store));
  CHECK(cache.flush(std::chrono::milliseconds(0)));
  const int way = GENERATE(range(0, 3));
  CHECK((way == 0   ? cache.clear()
         : way == 1 ? cache.invalidate_tag("t")
                    : cache.invalidate_salt("s"))
            .complete());
  CHECK(TierNode(with_tier(store)).look(kVictim, {.salt = "s"}).found() == 0);
  CHECK(cache.stats().invalidations == 1);
  CHECK(cache.stats().tiers.size() == 1);
}

}  // namespace
}  // namespace incipit::test
