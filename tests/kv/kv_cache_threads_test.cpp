// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

namespace incipit::test {
namespace {

/// One thread's requests; each shares some front with those of the other threads.
void serve(FakeDevice& device, kv::KvCache& cache, std::uint64_t seed, std::atomic<int>& damaged) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 150; ++i) {
    FakeSequence sequence(device, cache, random() % 8 == 0 ? "" : "n");
    const Tokens prompt = ids(random() % 50) + ids(1 + random() % 20, 100);
    if (!sequence.start(prompt, random() % 20)) {
      std::this_thread::yield();
      continue;
    }
    while (sequence.computed() < prompt.size()) {
      sequence.compute(1 + random() % 20);
      if (!sequence.intact()) ++damaged;
      if (random() % 4 == 0) break;  // cancelled
      sequence.commit();
      if (!sequence.intact()) ++damaged;
    }
  }
}

TEST_CASE("threads share a small cache") {
  FakeDevice device;
  const std::size_t blocks = GENERATE(3u, 12u, 40u);
  kv::KvCache cache(device, tiny_layout(), {.blocks = blocks, .poison_freed_blocks = true});
  std::atomic<int> damaged = 0;
  std::atomic<bool> done = false;
  std::thread observer([&] {
    while (!done) {
      const CacheStats stats = cache.stats();
      if (stats.blocks_in_use > blocks || stats.blocks_cached > blocks) ++damaged;
      cache.check_integrity();
      cache.clear();
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] { serve(device, cache, seed, damaged); });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  observer.join();
  CHECK(damaged == 0);
  CHECK(cache.stats().blocks_in_use == 0);
  CHECK(cache.stats().lookups > 0);
  cache.check_integrity();
}

/// The same with labels, forks and shared fronts, and marks as a tier makes them.
void serve_with_labels(FakeDevice& device, kv::KvCache& cache, std::uint64_t seed,
                       std::atomic<int>& damaged) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100; ++i) {
    CacheLabels labels{.salt = random() % 2 == 0 ? "a" : "b"};
    labels.session = std::string(1, static_cast<char>('p' + random() % 4));
    labels.tags = {std::string(1, static_cast<char>('x' + random() % 3))};
    if (random() % 3 == 0) labels.time_to_live = std::chrono::seconds(1);
    if (random() % 3 == 0) labels.retention = {{.priority = CachePriority::kLow}};
    FakeSequence sequence(device, cache, labels.salt);
    if (!sequence.start(ids(random() % 50) + ids(1 + random() % 20, 100), 0, labels)) continue;
    sequence.compute();
    sequence.commit();
    const kv::BlockTable front = cache.share(sequence.table(), sequence.table().committed());
    const kv::PathFacts seen = cache.facts(front);
    cache.mark_stored(front, 0, seen.blocks, 1);
    FakeSequence child(device, cache, "");
    if (sequence.fork(child, 20)) {
      sequence.drop();
      for (TokenId token = 0; token < 20; ++token) child.generate(token);
      child.compute();
      child.commit();
      if (!child.intact()) ++damaged;
    } else if (!sequence.intact()) {
      ++damaged;
    }
  }
}

/// What a host and its tiers do meanwhile.
void disturb(kv::KvCache& cache, std::uint64_t seed, std::atomic<int>& damaged) {
  std::mt19937_64 random(seed);
  switch (random() % 9) {
    case 0:
      cache.invalidate_tag("x");
      break;
    case 1:
      cache.invalidate_session("p");
      break;
    case 2:
      cache.invalidate_prefix("a", ids(20));
      break;
    case 3:
      cache.invalidate_owner("b");
      break;
    case 4:
      cache.pin("a", ids(40), std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
      break;
    case 5:
      for (kv::KvCache::Victim& victim : cache.victims(3)) cache.evict(std::move(victim));
      break;
    case 6:
      cache.clear_stored(1);
      break;
    case 7:
      if (cache.explain_miss("a", ids(40)).known_tokens > 40) ++damaged;
      break;
    default:
      if (cache.events(0, 10).next > cache.snapshot().next) ++damaged;
  }
}

TEST_CASE("threads share, fork and forget") {
  FakeDevice device;
  const std::size_t blocks = GENERATE(8u, 40u);
  kv::KvCache cache(device, tiny_layout(),
                    {.blocks = blocks,
                     .poison_freed_blocks = true,
                     .owner_quota_blocks = blocks / 2,
                     .hot_sessions = 2,
                     .event_buffer = 64});
  std::atomic<int> damaged = 0;
  std::atomic<bool> done = false;
  std::thread host([&] {
    for (std::uint64_t seed = 0; !done; ++seed) {
      disturb(cache, seed, damaged);
      cache.check_integrity();
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    threads.emplace_back([&, seed] { serve_with_labels(device, cache, seed, damaged); });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  host.join();
  CHECK(damaged == 0);
  CHECK(cache.stats().blocks_in_use == 0);
  CHECK(cache.stats().tokens_reused > 0);
  cache.check_integrity();
}

}  // namespace
}  // namespace incipit::test
