// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// What decides who makes room: priorities, times, pins, quotas, sessions, and tiers.

namespace incipit::test {
namespace {

using kv::BlockTable;
using kv::KvCache;
using kv::KvCacheOptions;
using kv::Time;
using std::chrono::seconds;

struct Setup {
  explicit Setup(KvCacheOptions options)
      : cache(device, tiny_layout(), with_clock(std::move(options))) {}

  KvCacheOptions with_clock(KvCacheOptions options) {
    options.poison_freed_blocks = true;
    options.clock = [this] { return now; };
    return options;
  }
  FakeSequence start(const Tokens& prompt, const CacheLabels& labels = {},
                     const std::string& name_space = "n") {
    FakeSequence sequence(device, cache, name_space);
    REQUIRE(sequence.start(prompt, 0, labels));
    sequence.compute();
    sequence.commit();
    REQUIRE(sequence.intact());
    cache.check_integrity();
    return sequence;
  }
  void run(const Tokens& prompt, const CacheLabels& labels = {},
           const std::string& name_space = "n") {
    start(prompt, labels, name_space).drop();
    cache.check_integrity();
  }
  /// Known tokens, without using them. What has expired is dropped first, as any request does.
  std::size_t known(const Tokens& prompt, const std::string& name_space = "n") {
    KvCache::Match match;
    CHECK(cache.start("", {}, 0, match));
    cache.check_integrity();
    return cache.explain_miss(name_space, prompt).known_tokens;
  }
  /// Takes `blocks` blocks that were free or can be evicted, and gives them back.
  void squeeze(std::size_t blocks) { run(Tokens(16 * blocks, -1), {}, ""); }

  Time now = Time(seconds(1'000'000));
  FakeDevice device;
  KvCache cache;
};

TEST_CASE("lower priorities go first, whatever was used last") {
  Setup setup({.blocks = 6});
  const auto priority = [](CachePriority class_of_all) {
    return CacheLabels{.retention = {{.priority = class_of_all}}};
  };
  setup.run(ids(32, 100), priority(CachePriority::kHigh));
  setup.run(ids(32, 200));
  setup.run(ids(32, 300), priority(CachePriority::kLow));
  setup.squeeze(1);
  CHECK(setup.known(ids(32, 300)) == 16);
  setup.squeeze(3);
  CHECK(setup.known(ids(32, 300)) == 0);
  CHECK(setup.known(ids(32, 200)) == 16);
  setup.squeeze(5);
  CHECK(setup.known(ids(32, 200)) == 0);
  CHECK(setup.known(ids(32, 100)) == 16);
  setup.squeeze(6);
  CHECK(setup.known(ids(32, 100)) == 0);
}

TEST_CASE("a priority is that of a range of tokens; later ranges win") {
  Setup setup({.blocks = 8});
  // High up to token 40, of which the third block has 8; then low but for the fifth block.
  const CacheLabels labels{.retention = {{.priority = CachePriority::kLow},
                                         {.end_token = 40, .priority = CachePriority::kHigh},
                                         {.first_token = 64, .end_token = 80}}};
  setup.run(ids(96), labels);
  setup.run(ids(32, 500));
  setup.squeeze(1);  // the sixth block
  CHECK(setup.known(ids(96)) == 80);
  setup.squeeze(2);  // the fifth is high, and shields the fourth
  CHECK(setup.known(ids(96)) == 80);
  CHECK(setup.known(ids(32, 500)) == 16);
  setup.squeeze(3);
  CHECK(setup.known(ids(32, 500)) == 0);
  setup.squeeze(4);
  CHECK(setup.known(ids(96)) == 64);
  setup.squeeze(5);  // the fourth is low again
  CHECK(setup.known(ids(96)) == 48);
}

TEST_CASE("the highest priority of all users counts") {
  Setup setup({.blocks = 4});
  const auto priority = [](CachePriority class_of_all) {
    return CacheLabels{.retention = {{.priority = class_of_all}}};
  };
  setup.run(ids(32), priority(CachePriority::kLow));
  setup.run(ids(33));  // normal from now on
  setup.run(ids(33), priority(CachePriority::kLow));
  setup.run(ids(32, 500), priority(CachePriority::kLow));
  setup.squeeze(2);
  CHECK(setup.known(ids(32)) == 32);
  setup.run(ids(33), priority(CachePriority::kHigh));
  setup.run(ids(33), priority(CachePriority::kLow));
  setup.run(ids(32, 700));
  setup.squeeze(2);
  CHECK(setup.known(ids(32)) == 32);
  CHECK(setup.known(ids(32, 700)) == 0);
}

TEST_CASE("a priority ends with its duration") {
  Setup setup({.blocks = 6});
  const CacheLabels high{.retention = {{.duration = seconds(60)}}};
  const CacheLabels low{.retention = {{.priority = CachePriority::kLow, .duration = seconds(30)}}};
  setup.run(ids(32, 100), high);
  setup.run(ids(32, 200), low);
  setup.run(ids(32, 300));
  setup.now += seconds(29);
  setup.squeeze(1);
  CHECK(setup.known(ids(32, 200)) == 16);
  setup.now += seconds(1);
  // Both are normal now; a node that changes its rank counts as used then.
  setup.squeeze(2);
  CHECK(setup.known(ids(32, 200)) == 16);
  CHECK(setup.known(ids(32, 300)) == 16);
  setup.run(ids(17, 100), high);  // of its first block for another minute
  setup.now += seconds(40);
  setup.squeeze(6);
  CHECK(setup.known(ids(32, 100)) == 0);
}

TEST_CASE("blocks live as long as any of their users says") {
  Setup setup({.blocks = 16, .time_to_live = seconds(100)});
  setup.run(ids(48), {.time_to_live = seconds(10)});
  setup.run(ids(33), {.time_to_live = seconds(20)});
  setup.run(ids(17));  // the cache's own: 100
  setup.run(ids(32, 500));
  setup.now += seconds(9);
  CHECK(setup.known(ids(48)) == 48);
  const BlockTable path = std::move(setup.cache.victims(1).at(0).path);
  const auto life = [&](std::size_t block) { return setup.cache.facts(path).blocks[block].life; };
  CHECK(life(0) == seconds(91));
  CHECK(life(1) == seconds(11));
  CHECK(life(2) == seconds(1));
  setup.now += seconds(1);
  CHECK(setup.known(ids(48)) == 32);
  setup.now += seconds(10);
  CHECK(setup.known(ids(48)) == 16);
  CHECK(setup.known(ids(32, 500)) == 32);
  setup.now += seconds(80);
  CHECK(setup.known(ids(48)) == 0);
  CHECK(setup.known(ids(32, 500)) == 0);
  CHECK(setup.cache.stats().blocks_cached == 0);
  CHECK(setup.cache.stats().evictions == 0);
}

TEST_CASE("a clock that steps back and lives that never end do no harm") {
  Setup setup({.blocks = 8});
  setup.run(ids(32), {.time_to_live = seconds::max()});
  setup.run(ids(32, 100), {.time_to_live = seconds(10)});
  setup.now -= seconds(500'000);
  CHECK(setup.known(ids(32, 100)) == 32);
  setup.now += seconds(900'000);
  CHECK(setup.known(ids(32, 100)) == 0);
  CHECK(setup.known(ids(32)) == 32);
}

TEST_CASE("a sequence that outlives its blocks' time keeps them and indexes nothing more") {
  Setup setup({.blocks = 8});
  FakeSequence sequence = setup.start(ids(40), {.time_to_live = seconds(10)});
  FakeSequence idle(setup.device, setup.cache, "n");
  REQUIRE(idle.start(ids(20, 500), 0, {.time_to_live = seconds(10)}));
  idle.compute();
  setup.now += seconds(10);
  CHECK(setup.known(ids(40)) == 0);
  CHECK(sequence.intact());
  idle.commit();
  CHECK(idle.table().committed() == 0);
  setup.cache.check_integrity();
  sequence.drop();
  CHECK(setup.cache.stats().blocks_cached == 0);
}

TEST_CASE("what is pinned is evicted after everything else") {
  Setup setup({.blocks = 6});
  setup.run(ids(32, 100));
  setup.run(ids(32, 200), {.retention = {CacheRetention{}}});
  CHECK(setup.cache.pin("n", ids(20, 100), setup.now + seconds(60)) == 16);
  CHECK(setup.cache.pin("n", ids(20, 900), setup.now + seconds(60)) == 0);
  CHECK(setup.cache.pin("m", ids(20, 100), setup.now + seconds(60)) == 0);
  CHECK(setup.cache.pin("n", ids(40, 200), setup.now) == 0);
  setup.cache.check_integrity();
  setup.squeeze(5);
  CHECK(setup.known(ids(32, 100)) == 16);
  CHECK(setup.known(ids(32, 200)) == 0);
  // Room that a request needs it gets.
  setup.squeeze(6);
  CHECK(setup.known(ids(32, 100)) == 0);
}

TEST_CASE("a pin ends by itself, the latest of several") {
  Setup setup({.blocks = 4});
  setup.run(ids(32));
  CHECK(setup.cache.pin("n", ids(32), setup.now + seconds(60)) == 32);
  CHECK(setup.cache.pin("n", ids(16), setup.now + seconds(90)) == 16);
  CHECK(setup.cache.pin("n", ids(32), setup.now + seconds(30)) == 32);
  const auto survives = [&](const Tokens& prompt) {
    setup.run(ids(32, 500));
    setup.squeeze(2);
    return setup.known(prompt);
  };
  setup.now += seconds(59);
  CHECK(survives(ids(32)) == 32);
  setup.now += seconds(1);
  setup.squeeze(3);
  CHECK(setup.known(ids(32)) == 16);
  setup.now += seconds(30);
  setup.squeeze(4);
  CHECK(setup.known(ids(32)) == 0);
}

TEST_CASE("an owner above its quota makes room for itself") {
  Setup setup({.blocks = 20, .owner_quota_blocks = 4});
  setup.run(ids(48), {.salt = "small"}, "small");
  for (TokenId i = 1; i < 10; ++i) {
    setup.run(ids(32, 1000 * i), {.salt = "greedy"}, i % 2 == 0 ? "a" : "b");
    CHECK(setup.cache.owner_blocks("greedy") <= 4);
  }
  CHECK(setup.cache.owner_blocks("greedy") == 4);
  CHECK(setup.cache.owner_blocks("small") == 3);
  CHECK(setup.known(ids(48), "small") == 48);
  CHECK(setup.known(ids(32, 9000), "b") == 32);
  CHECK(setup.known(ids(32, 8000), "a") == 32);
  CHECK(setup.known(ids(32, 7000), "b") == 0);
  CHECK(setup.cache.stats().evictions == 14);
  CHECK(setup.cache.stats().blocks_cached ==
        setup.cache.owner_blocks("greedy") + setup.cache.owner_blocks("small"));
}

TEST_CASE("what an owner's running requests hold may exceed its quota until they end") {
  Setup setup({.blocks = 20, .owner_quota_blocks = 2});
  const FakeSequence other = setup.start(ids(32, 900), {.salt = "o"}, "o");
  FakeSequence a = setup.start(ids(64), {.salt = "s"});
  FakeSequence b = setup.start(ids(32) + ids(32, 500), {.salt = "s"});
  CHECK(setup.cache.owner_blocks("s") == 6);
  CHECK(a.intact());
  a.drop();
  setup.cache.check_integrity();
  CHECK(setup.cache.owner_blocks("s") == 4);  // what the other one holds
  CHECK(b.intact());
  b.drop();
  setup.cache.check_integrity();
  CHECK(setup.cache.owner_blocks("s") == 2);
  CHECK(setup.known(ids(40)) == 32);
  CHECK(setup.cache.owner_blocks("o") == 2);
}

TEST_CASE("a pin holds against the owner's quota") {
  Setup setup({.blocks = 20, .owner_quota_blocks = 2});
  setup.run(ids(32));
  CHECK(setup.cache.pin("n", ids(32), setup.now + seconds(5)) == 32);
  setup.run(ids(32, 500));
  CHECK(setup.known(ids(32)) == 32);
  CHECK(setup.known(ids(32, 500)) == 0);
  FakeSequence held = setup.start(ids(32, 500));
  setup.now += seconds(5);
  CHECK(setup.known(ids(32)) == 0);  // the owner has two others in use
  CHECK(setup.known(ids(32, 500)) == 32);
}

TEST_CASE("blocks that only cold sessions have go first; shared ones are never touched") {
  Setup setup({.blocks = 12, .hot_sessions = 2});
  const auto talk = [&](const std::string& session, TokenId from) {
    setup.run(ids(32) + ids(32, from), {.session = session});
  };
  talk("a", 100);
  talk("b", 200);
  CHECK(setup.cache.cold_paths(10).empty());
  talk("c", 300);  // a gets cold
  setup.squeeze(4 + 1);
  CHECK(setup.known(ids(32) + ids(32, 100)) == 48);
  CHECK(setup.known(ids(32) + ids(32, 200)) == 64);
  setup.run(ids(33) + ids(32, 400), {.session = "a"});  // hot again, b is cold
  setup.squeeze(4 + 1);
  CHECK(setup.known(ids(32) + ids(32, 100)) == 48);
  CHECK(setup.known(ids(32) + ids(32, 200)) < 64);
  CHECK(setup.known(ids(32) + ids(32, 300)) == 64);
  for (TokenId i = 0; i < 5; ++i) talk(std::to_string(i), 1000 * i + 1000);
  CHECK(setup.known(ids(32)) == 32);
}

TEST_CASE("a cold session's paths are handed out, stored elsewhere and dropped") {
  Setup setup({.blocks = 20, .hot_sessions = 1});
  setup.run(ids(16));
  setup.run(ids(16) + ids(32, 100), {.session = "a"});
  setup.run(ids(16) + ids(48, 200), {.session = "b"});
  std::vector<KvCache::Victim> cold = setup.cache.cold_paths(SIZE_MAX);
  REQUIRE(cold.size() == 1);
  CHECK(cold[0].blocks == 2);
  CHECK(setup.cache.names(cold[0].path).tokens == ids(16) + ids(32, 100));
  CHECK(setup.cache.facts(cold[0].path).blocks.size() == 3);
  setup.cache.mark_stored(cold[0].path, 0, 3, 1);
  setup.cache.check_integrity();
  setup.cache.evict(std::move(cold[0]));
  CHECK(setup.known(ids(16) + ids(32, 100)) == 16);
  CHECK(setup.known(ids(16) + ids(48, 200)) == 64);
  CHECK(setup.cache.cold_paths(SIZE_MAX).empty());
}

TEST_CASE("cold paths are found behind other low blocks, and end where sessions share") {
  Setup setup({.blocks = 20, .hot_sessions = 1});
  const auto low = [](std::string session) {
    return CacheLabels{.session = std::move(session),
                       .retention = {{.priority = CachePriority::kLow}}};
  };
  setup.run(ids(32, 900), low({}));
  setup.run(ids(16) + ids(32, 100), low("a"));
  setup.run(ids(16), low("b"));  // shares the first block, and is as low
  std::vector<KvCache::Victim> cold = setup.cache.cold_paths(SIZE_MAX);
  REQUIRE(cold.size() == 1);
  CHECK(cold[0].blocks == 2);
  cold.clear();
  cold = setup.cache.cold_paths(1);
  REQUIRE(cold.size() == 1);
  CHECK(cold[0].blocks == 1);
  setup.cache.evict(std::move(cold[0]));
  CHECK(setup.known(ids(16) + ids(32, 100)) == 32);
  CHECK(setup.cache.cold_paths(0).empty());
}

TEST_CASE("an empty range of tokens has no priority") {
  Setup setup({.blocks = 4});
  setup.run(ids(32), {.retention = {{.first_token = 20, .end_token = 20}}});
  setup.run(ids(32, 500));
  setup.squeeze(1);
  CHECK(setup.known(ids(32)) == 16);
}

TEST_CASE("victims are held until they are evicted or given back") {
  Setup setup({.blocks = 10});
  setup.run(ids(48, 100));
  setup.run(ids(32, 200));
  setup.run(ids(16, 100) + ids(32, 300));
  std::vector<KvCache::Victim> victims = setup.cache.victims(3);
  REQUIRE(victims.size() == 2);
  CHECK(setup.cache.names(victims[0].path).tokens == ids(48, 100));
  CHECK(victims[0].blocks == 2);  // the first block has another child
  CHECK(setup.cache.names(victims[1].path).tokens == ids(32, 200));
  CHECK(victims[1].blocks == 1);
  setup.cache.check_integrity();
  CHECK(setup.cache.stats().blocks_in_use == 5);
  setup.squeeze(5);  // takes the free ones and the path that is left, save its shared front
  CHECK(setup.known(ids(48, 100)) == 48);
  setup.cache.evict(std::move(victims[1]));
  CHECK(setup.known(ids(32, 200)) == 16);
  setup.run(ids(49, 100));  // somebody wants it after all
  const FakeSequence user = setup.start(ids(33, 100));
  setup.cache.evict(std::move(victims[0]));
  CHECK(setup.known(ids(48, 100)) == 32);
  CHECK(user.intact());
  CHECK(setup.cache.victims(0).empty());
}

TEST_CASE("victims leave the room that is promised") {
  Setup setup({.blocks = 6});
  setup.run(ids(96));
  FakeSequence running(setup.device, setup.cache, "n");
  REQUIRE(running.start(ids(32, 500)));
  CHECK(setup.cache.victims(1).empty());  // its path would hold all six blocks
  running.compute();
  CHECK(setup.cache.victims(1).size() == 1);
  CHECK(running.intact());
  setup.cache.check_integrity();
}

TEST_CASE("pinned blocks are no victims, and survive an eviction that was planned before") {
  Setup setup({.blocks = 8});
  setup.run(ids(32));
  std::vector<KvCache::Victim> victims = setup.cache.victims(2);
  REQUIRE(victims.size() == 1);
  setup.cache.pin("n", ids(32), setup.now + seconds(60));
  setup.cache.evict(std::move(victims[0]));
  CHECK(setup.known(ids(32)) == 32);
  CHECK(setup.cache.victims(2).empty());
}

TEST_CASE("watermarks say how much to free") {
  Setup setup({.blocks = 10});
  CHECK(setup.cache.blocks_to_free(0, 0) == 0);
  setup.run(ids(128));
  CHECK(setup.cache.blocks_to_free(8, 5) == 0);
  CHECK(setup.cache.blocks_to_free(7, 5) == 3);
  CHECK(setup.cache.blocks_to_free(7, 20) == 0);
  const FakeSequence running = setup.start(ids(100));
  CHECK(setup.cache.blocks_to_free(0, 0) == 2);  // the others are in use
}

TEST_CASE("every policy keeps what is promised and evicts leaves first") {
  const Eviction policy =
      GENERATE(Eviction::kLru, Eviction::kS3Fifo, Eviction::kArc, Eviction::kGdsf);
  Setup setup({.blocks = 10, .eviction = policy});
  const FakeSequence held = setup.start(ids(48));
  for (TokenId i = 1; i < 40; ++i) {
    setup.run(ids(32) + ids(32, 100 * (i % 7 + 1)));
    setup.run(ids(48, 1000 * i));
    CHECK(held.intact());
    CHECK(setup.known(ids(48)) == 48);
  }
  CHECK(setup.cache.stats().evictions > 40);
}

}  // namespace
}  // namespace incipit::test
