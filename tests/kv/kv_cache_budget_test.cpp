// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <string>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"
#include "support/heap_bytes.h"

// What a pool takes of a budget besides KV.

namespace incipit::test {
namespace {

using kv::KvCache;

constexpr std::size_t kBlocks = 20'000;
constexpr std::size_t kPromptBlocks = 16;

CacheLabels labels_of(int number) {
  CacheLabels labels;
  labels.salt = "user " + std::to_string(number % 10);
  labels.session = "session " + std::to_string(number);
  labels.tags = {"document " + std::to_string(number % 100)};
  labels.retention = {{.first_token = 0,
                       .end_token = 64,
                       .priority = number % 2 == 0 ? CachePriority::kLow : CachePriority::kHigh,
                       .duration = std::chrono::seconds(number % 3 == 0 ? 0 : 100)}};
  return labels;
}

void insert(KvCache& cache, int number, bool with_labels) {
  const CacheLabels labels = with_labels ? labels_of(number) : CacheLabels{};
  const Tokens prompt = ids(16 * kPromptBlocks + 1, 1000 * number);
  const std::string name_space = "model " + labels.salt;
  KvCache::Match match;
  REQUIRE(cache.start(name_space, labels, prompt, prompt.size(), match));
  cache.extend(match.table, prompt.size());
  cache.commit(match.table, prompt);
  if (with_labels && number % 50 == 0) {
    cache.pin(name_space, prompt, std::chrono::steady_clock::now() + std::chrono::hours(1));
  }
}

TEST_CASE("a block takes no more than is set aside for it, whatever is used") {
  const bool everything = GENERATE(false, true);
  for (const Eviction eviction :
       {Eviction::kLru, Eviction::kS3Fifo, Eviction::kArc, Eviction::kGdsf}) {
    CAPTURE(everything, static_cast<int>(eviction));
    FakeDevice device;
    const std::size_t before = heap_bytes();
    kv::KvCacheOptions options{.blocks = kBlocks, .eviction = eviction};
    if (everything) {
      options.owner_quota_blocks = kBlocks / 2;
      options.hot_sessions = 5;
      options.time_to_live = std::chrono::hours(1);
    }
    KvCache cache(device, tiny_layout(), options);
    const std::size_t prompts = 3 * kBlocks / kPromptBlocks;
    for (std::size_t i = 0; i < prompts; ++i) insert(cache, static_cast<int>(i), everything);
    const std::size_t pool = kBlocks * cache.pool().layout.block_bytes();
    const std::size_t grown = heap_bytes() - before;
    CHECK(grown > pool);
    CHECK((grown - pool) / kBlocks <= KvCache::kBookkeepingBytes);
  }
}

}  // namespace
}  // namespace incipit::test
