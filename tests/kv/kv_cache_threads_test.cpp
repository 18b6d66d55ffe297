// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
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

}  // namespace
}  // namespace incipit::test
