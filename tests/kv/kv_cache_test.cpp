// SPDX-License-Identifier: Apache-2.0
#include "kv/kv_cache.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "incipit/error.h"
#include "support/catch.h"
#include "support/fake_device.h"

// What is found again, and how much of it.

namespace incipit::test {
namespace {

using kv::KvCache;

/// Runs a whole request and lets it go.
std::size_t run(FakeDevice& device, KvCache& cache, const Tokens& prompt,
                const std::string& name_space = "n") {
  FakeSequence sequence(device, cache, name_space);
  REQUIRE(sequence.start(prompt));
  sequence.compute();
  REQUIRE(sequence.intact());
  sequence.commit();
  REQUIRE(sequence.intact());
  cache.check_integrity();
  return sequence.reused();
}

TEST_CASE("an empty cache finds nothing and has all its room") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 4});
  CHECK(cache.pool().blocks == 4);
  CHECK(cache.pool().layout.block_bytes() == 128);
  FakeSequence sequence(device, cache, "n");
  REQUIRE(sequence.start(ids(17), 30));
  CHECK(sequence.reused() == 0);
  CHECK(sequence.table().blocks().empty());
  CHECK(sequence.table().committed() == 0);
  const CacheStats stats = cache.stats();
  CHECK(stats.blocks_total == 4);
  CHECK(stats.blocks_in_use == 0);
  CHECK(stats.bytes == 512);
  cache.check_integrity();
}

TEST_CASE("a cache that cannot be made says why") {
  FakeDevice device;
  CHECK_THROWS_AS(KvCache(device, tiny_layout(), {.blocks = 0}), Error);
}

// SGLang #28692: keys about the edges of blocks.
TEST_CASE("reuse is the common front of what was committed, save one token") {
  // For lengths about the edges of blocks: of the first text, of what the second has in common with
  // it, and of the second.
  static constexpr std::size_t kLengths[] = {0,  1,  2,  15, 16, 17, 31, 32,
                                             33, 47, 48, 49, 63, 64, 65};
  for (const std::size_t cached : kLengths) {
    for (const std::size_t common : kLengths) {
      for (const std::size_t length : kLengths) {
        if (common > std::min(cached, length) || length == 0) continue;
        CAPTURE(cached, common, length);
        FakeDevice device;
        KvCache cache(device, tiny_layout(), {.blocks = 12, .poison_freed_blocks = true});
        run(device, cache, ids(cached));
        const Tokens second = ids(common) + ids(length - common, 1000);
        const std::size_t indexed = cached / 16 * 16;
        const std::size_t expected = std::min({common, indexed, length - 1});
        REQUIRE(run(device, cache, second) == expected);
        const std::size_t known = std::max(length / 16 * 16, std::min(common, indexed));
        REQUIRE(run(device, cache, second) == std::min(length - 1, known));
      }
    }
  }
}

// nano-vllm #144: nothing left to compute where all blocks are known.
TEST_CASE("a full hit leaves one token to compute") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  for (const std::size_t length : {16u, 32u, 48u}) {
    run(device, cache, ids(length));
    CHECK(run(device, cache, ids(length)) == length - 1);
    CHECK(run(device, cache, ids(length)) == length - 1);
    CHECK(cache.stats().blocks_cached == length / 16);  // the recomputed block was no new one
  }
}

TEST_CASE("prompts of no and of one token reuse nothing") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 4});
  run(device, cache, ids(33));
  CHECK(run(device, cache, {}) == 0);
  CHECK(run(device, cache, ids(1)) == 0);
  CHECK(run(device, cache, ids(2)) == 1);
}

TEST_CASE("the front of a longer cached prompt is found") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 16});
  run(device, cache, ids(160));
  for (std::size_t length = 1; length <= 160; ++length) {
    CHECK(run(device, cache, ids(length)) == length - 1);
  }
}

TEST_CASE("prompts that take turns keep hitting") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 10});
  const Tokens a = ids(40) + ids(30, 1000);
  const Tokens b = ids(40) + ids(30, 2000);
  run(device, cache, a);
  run(device, cache, b);
  for (int i = 0; i < 20; ++i) {
    CHECK(run(device, cache, a) == 64);
    CHECK(run(device, cache, b) == 64);
  }
  CHECK(cache.stats().evictions == 0);
}

TEST_CASE("a static text is found whole behind any number of prompts") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 600});
  const Tokens text = ids(40);
  for (TokenId i = 0; i < 400; ++i) {
    // The third block is 8 tokens of the text and 8 of the prompt.
    CHECK(run(device, cache, text + ids(20, 1000 + 100 * i)) == (i == 0 ? 0 : 40));
  }
  // Also the oldest of them, of which whole blocks are known.
  CHECK(run(device, cache, text + ids(8, 1000)) == 47);
  CHECK(run(device, cache, text + ids(20, 1000)) == 48);
}

TEST_CASE("a partial hit is a private copy") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  FakeSequence first(device, cache, "n");
  REQUIRE(first.start(ids(32)));
  first.compute();
  first.commit();

  FakeSequence second(device, cache, "n");
  REQUIRE(second.start(ids(21) + ids(20, 1000)));
  CHECK(second.reused() == 21);
  CHECK(second.table().committed() == 1);
  REQUIRE(second.table().blocks().size() == 2);
  CHECK(second.table().blocks()[0] == first.table().blocks()[0]);
  CHECK(second.table().blocks()[1] != first.table().blocks()[1]);
  second.compute();
  CHECK(first.intact());
  CHECK(second.intact());
  // Once full it is a block like any other.
  second.commit();
  CHECK(second.table().committed() == 2);
  CHECK(run(device, cache, second.tokens()) == 32);
  cache.check_integrity();
}

TEST_CASE("generated tokens are found like those of a prompt") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  FakeSequence sequence(device, cache, "n");
  REQUIRE(sequence.start(ids(10), 30));
  sequence.compute();
  for (TokenId i = 0; i < 30; ++i) {
    sequence.generate(500 + i);
    sequence.compute();
    sequence.commit();
    CHECK(sequence.table().committed() == sequence.tokens().size() / 16);
  }
  CHECK(run(device, cache, sequence.tokens() + ids(5)) == 32);
}

TEST_CASE("commit() takes what is new and may be repeated") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  FakeSequence sequence(device, cache, "n");
  REQUIRE(sequence.start(ids(64)));
  sequence.commit();
  CHECK(sequence.table().committed() == 0);
  for (const std::size_t chunk : {15u, 1u, 1u, 14u, 1u, 16u, 16u}) {
    sequence.compute(chunk);
    sequence.commit();
    sequence.commit();
    CHECK(sequence.table().committed() == sequence.computed() / 16);
    CHECK(cache.stats().blocks_cached == sequence.computed() / 16);
    CHECK(sequence.intact());
    cache.check_integrity();
  }
  // Fewer tokens than before change nothing.
  cache.commit(sequence.table(), std::span(sequence.tokens()).first(16));
  CHECK(sequence.table().committed() == 4);
}

TEST_CASE("what was not committed is not found, and its blocks come back") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 4, .poison_freed_blocks = true});
  {
    FakeSequence cancelled(device, cache, "n");
    REQUIRE(cancelled.start(ids(40), 24));
    cancelled.compute(33);
    CHECK(cache.stats().blocks_in_use == 3);
  }
  CHECK(cache.stats().blocks_in_use == 0);
  CHECK(cache.stats().blocks_cached == 0);
  CHECK(run(device, cache, ids(64)) == 0);
}

// sglang-jax #982, SGLang #105, #140: blocks that an aborted request loses, or frees twice.
TEST_CASE("a request that is cancelled at any point gives all back") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8, .poison_freed_blocks = true});
  const auto cancelled_after = [&](int steps, bool forked) {
    FakeSequence child(device, cache, "n");
    FakeSequence sequence(device, cache, "n");
    REQUIRE(sequence.start(ids(40), 24));
    for (int step = 0; step < steps; ++step) {
      sequence.compute(8);
      if (step % 2 == 1) sequence.commit();
    }
    if (forked && sequence.fork(child, 8)) child.compute();
    if (steps % 3 == 0) cache.clear();
    CHECK(sequence.intact());
    cache.check_integrity();
  };
  for (int steps = 0; steps < 7; ++steps) {
    for (const bool forked : {false, true}) {
      cancelled_after(steps, forked);
      CHECK(cache.stats().blocks_in_use == 0);
      cache.check_integrity();
    }
  }
  CHECK(run(device, cache, ids(16 * 8, 900)) == 0);  // the whole pool can be had
}

TEST_CASE("a table can be moved, and lets go once") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 5});
  KvCache::Match match;
  REQUIRE(cache.start("n", ids(20), 20, match));
  cache.extend(match.table, 20);
  kv::BlockTable moved(std::move(match.table));
  CHECK(moved.blocks().size() == 2);
  match.table = std::move(moved);
  CHECK(match.table.blocks().size() == 2);
  kv::BlockTable& self = match.table;
  match.table = std::move(self);
  CHECK(match.table.blocks().size() == 2);
  CHECK(cache.stats().blocks_in_use == 2);
  REQUIRE(cache.start("n", ids(40), 40, match));  // the old table goes when the new one is there
  cache.extend(match.table, 40);
  CHECK(cache.stats().blocks_in_use == 3);
  match.table = {};
  CHECK(cache.stats().blocks_in_use == 0);
  cache.check_integrity();
}

TEST_CASE("statistics count prompts that were looked up") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 6});
  run(device, cache, ids(40));
  run(device, cache, ids(40));
  run(device, cache, ids(40), "");  // is not looked up
  FakeSequence too_large(device, cache, "n");
  CHECK_FALSE(too_large.start(ids(40), 1000));
  FakeSequence live(device, cache, "n");
  REQUIRE(live.start(ids(20) + ids(3, 100)));
  live.compute();
  const CacheStats stats = cache.stats();
  CHECK(stats.lookups == 3);
  CHECK(stats.tokens_wanted == 40 + 40 + 23);
  CHECK(stats.tokens_reused == 32 + 20);
  CHECK(stats.blocks_cached == 2);
  CHECK(stats.blocks_in_use == 2);
  CHECK(stats.evictions == 0);
}

TEST_CASE("sequences that share blocks count them once") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 9});
  run(device, cache, ids(64));
  std::vector<FakeSequence> sequences;
  for (TokenId i = 0; i < 5; ++i) {
    sequences.emplace_back(device, cache, "n");
    REQUIRE(sequences.back().start(ids(64) + ids(10, 100 * i)));
    sequences.back().compute();
  }
  CHECK(cache.stats().blocks_in_use == 4 + 5);
  for (const FakeSequence& sequence : sequences) CHECK(sequence.intact());
  sequences.clear();
  CHECK(cache.stats().blocks_in_use == 0);
  cache.check_integrity();
}

TEST_CASE("a large pool works as a small one does") {
  constexpr std::size_t kBlocks = 100'000;
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = kBlocks});
  std::mt19937_64 random(1);
  std::vector<Tokens> prompts(20);
  for (Tokens& prompt : prompts) {
    prompt = ids(1600);
    while (prompt.size() < 16 * 8000) prompt.push_back(static_cast<TokenId>(random() % 50'000));
  }
  const auto start = [&](const Tokens& prompt) {
    KvCache::Match match;
    REQUIRE(cache.start("n", prompt, prompt.size(), match));
    cache.extend(match.table, prompt.size());
    cache.commit(match.table, prompt);
    return match.tokens;
  };
  for (const Tokens& prompt : prompts) start(prompt);
  // The last 12 fit, the front of all was kept, and so was a part of the one before.
  for (std::size_t i = prompts.size(); i-- > 8;) CHECK(start(prompts[i]) == 16 * 8000 - 1);
  CHECK(cache.stats().blocks_cached > kBlocks - 10);
  CHECK(start(prompts[0]) >= 1600);
  cache.check_integrity();
  cache.clear();
  CHECK(start(prompts[0]) == 0);
  cache.check_integrity();
}

}  // namespace
}  // namespace incipit::test
