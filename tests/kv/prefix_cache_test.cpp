// SPDX-License-Identifier: Apache-2.0
#include "incipit/prefix_cache.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "kv/prefix_cache_impl.h"
#include "support/catch.h"
#include "support/fake_device.h"

namespace incipit::test {
namespace {

using kv::CacheRegistry;
using kv::KvCache;

void run(FakeDevice& device, KvCache& cache, const Tokens& prompt) {
  FakeSequence sequence(device, cache, "n");
  REQUIRE(sequence.start(prompt));
  sequence.compute();
  sequence.commit();
}

TEST_CASE("a cache without an engine holds nothing") {
  PrefixCache cache;
  cache.clear();
  const CacheStats stats = cache.stats();
  CHECK(stats.lookups == 0);
  CHECK(stats.blocks_total == 0);
  CHECK(stats.bytes == 0);
  CHECK(stats.hit_rate() == 0.0);
}

TEST_CASE("statistics are summed over engines, and clear() reaches all") {
  FakeDevice device;
  KvCache a(device, tiny_layout(), {.blocks = 4});
  KvCache b(device, tiny_layout(), {.blocks = 8});
  const auto registry = std::make_shared<CacheRegistry>(PrefixCacheOptions{});
  const CacheRegistry::Registration of_a = registry->add(a, device, "");
  const CacheRegistry::Registration of_b = registry->add(b, device, "");
  run(device, a, ids(40));
  run(device, a, ids(40));
  run(device, b, ids(100));
  FakeSequence live(device, b, "n");
  REQUIRE(live.start(ids(20)));

  CacheStats stats = registry->stats();
  CHECK(stats.lookups == 4);
  CHECK(stats.tokens_wanted == 40 + 40 + 100 + 20);
  CHECK(stats.tokens_reused == 32 + 19);
  CHECK(stats.hit_rate() == Approx(51.0 / 200.0));
  CHECK(stats.blocks_total == 12);
  CHECK(stats.blocks_cached == 2 + 6);
  CHECK(stats.blocks_in_use == 2);
  CHECK(stats.evictions == 0);
  CHECK(stats.bytes == 12 * 128);

  registry->clear();
  stats = registry->stats();
  CHECK(stats.blocks_cached == 0);
  CHECK(stats.blocks_in_use == 2);
  CHECK(live.intact());
  CHECK(stats.lookups == 4);
}

TEST_CASE("an engine that goes takes its blocks along and leaves its counts") {
  FakeDevice device;
  const auto registry = std::make_shared<CacheRegistry>(PrefixCacheOptions{});
  KvCache stays(device, tiny_layout(), {.blocks = 4});
  const CacheRegistry::Registration registration = registry->add(stays, device, "");
  for (int i = 0; i < 3; ++i) {
    KvCache cache(device, tiny_layout(), {.blocks = 2});
    const CacheRegistry::Registration goes = registry->add(cache, device, "");
    run(device, cache, ids(32));
    run(device, cache, ids(32, 100));
    CHECK(registry->stats().blocks_total == 6);
  }
  const CacheStats stats = registry->stats();
  CHECK(stats.blocks_total == 4);
  CHECK(stats.blocks_cached == 0);
  CHECK(stats.bytes == 4 * 128);
  CHECK(stats.lookups == 6);
  CHECK(stats.tokens_wanted == 6 * 32);
  CHECK(stats.evictions == 3 * 2);
}

TEST_CASE("a registration can be moved, withdraws once and keeps the registry alive") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 2});
  auto registry = std::make_shared<CacheRegistry>(PrefixCacheOptions{});
  CacheRegistry::Registration first = registry->add(cache, device, "");
  CacheRegistry::Registration second(std::move(first));
  CHECK(registry->stats().blocks_total == 2);
  first = std::move(second);
  CHECK(registry->stats().blocks_total == 2);
  first = {};
  CHECK(registry->stats().blocks_total == 0);
  first = registry->add(cache, device, "");
  const std::weak_ptr<CacheRegistry> watch = registry;
  registry.reset();
  CHECK_FALSE(watch.expired());
  first = {};
  CHECK(watch.expired());
}

TEST_CASE("engines come and go while others look") {
  const auto registry = std::make_shared<CacheRegistry>(PrefixCacheOptions{});
  std::atomic<bool> done = false;
  std::atomic<int> wrong = 0;
  std::thread observer([&] {
    std::uint64_t lookups = 0;
    while (!done) {
      registry->clear();
      const CacheStats stats = registry->stats();
      if (stats.lookups < lookups) ++wrong;  // counts never go down
      lookups = stats.lookups;
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> engines;
  for (int i = 0; i < 4; ++i) {
    engines.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        FakeDevice device;
        KvCache cache(device, tiny_layout(), {.blocks = 3});
        const CacheRegistry::Registration registration = registry->add(cache, device, "");
        KvCache::Match match;
        if (!cache.start("n", ids(20), 20, match)) ++wrong;
      }
    });
  }
  for (std::thread& engine : engines) engine.join();
  done = true;
  observer.join();
  CHECK(wrong == 0);
  CHECK(registry->stats().lookups == 200);
}

}  // namespace
}  // namespace incipit::test
