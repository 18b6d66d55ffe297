// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_sequence.h"
#include "incipit/error.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// Who makes room for whom, and that what was promised can be had.

namespace incipit::test {
namespace {

using kv::KvCache;

struct SmallCache {
  explicit SmallCache(std::size_t blocks)
      : cache(device, tiny_layout(), {.blocks = blocks, .poison_freed_blocks = true}) {}

  FakeSequence start(const Tokens& prompt, std::size_t more = 0) {
    FakeSequence sequence(device, cache, "n");
    REQUIRE(sequence.start(prompt, more));
    return sequence;
  }
  void run(const Tokens& prompt) {
    FakeSequence sequence = start(prompt);
    sequence.compute();
    sequence.commit();
    CHECK(sequence.intact());
    cache.check_integrity();
  }
  /// Tokens of a prompt that are known; a use of them like any other.
  std::size_t known(const Tokens& prompt) {
    FakeSequence sequence = start(prompt);
    return sequence.reused();
  }
  bool has_room(std::size_t blocks) {
    KvCache::Match match;
    return cache.start("", {}, blocks * 16, match);
  }

  FakeDevice device;
  KvCache cache;
};

TEST_CASE("the least recently used prompt goes first, its tail before its head") {
  SmallCache small(6);
  small.run(ids(32, 100));
  small.run(ids(32, 200));
  small.run(ids(32, 300));
  CHECK(small.cache.stats().evictions == 0);
  small.run(ids(16, 400));  // takes one block
  CHECK(small.cache.stats().evictions == 1);
  CHECK(small.known(ids(33, 100)) == 16);
  CHECK(small.known(ids(33, 200)) == 32);
  CHECK(small.known(ids(33, 300)) == 32);
  CHECK(small.known(ids(17, 400)) == 16);
}

TEST_CASE("a hit makes a prompt the most recently used") {
  SmallCache small(6);
  small.run(ids(32, 100));
  small.run(ids(32, 200));
  small.run(ids(33, 100));
  small.run(ids(48, 300));  // 3 blocks: 2 are free
  CHECK(small.cache.stats().evictions == 1);
  CHECK(small.known(ids(33, 200)) == 16);
  CHECK(small.known(ids(33, 100)) == 32);
}

TEST_CASE("so does the front that is copied from it") {
  SmallCache small(4);
  small.run(ids(16, 100));
  small.run(ids(16, 200));
  CHECK(small.known(ids(8, 100)) == 7);
  small.run(ids(48, 300));
  CHECK(small.known(ids(17, 100)) == 16);
  CHECK(small.known(ids(17, 200)) == 0);
}

TEST_CASE("a shared front outlives each of its tails") {
  SmallCache small(8);
  for (TokenId i = 0; i < 30; ++i) {
    small.run(ids(48) + ids(32, 1000 * (i + 1)));
    CHECK(small.known(ids(49)) == 48);
  }
  CHECK(small.cache.stats().evictions > 30);
}

TEST_CASE("what a live sequence holds is never evicted") {
  SmallCache small(8);
  small.run(ids(64));
  const FakeSequence live = small.start(ids(65));
  CHECK(live.reused() == 64);
  for (TokenId i = 1; i < 20; ++i) {
    small.run(ids(48, 1000 * i));
    CHECK(live.intact());
  }
  CHECK(live.table().committed() == 4);
}

// mini-sglang #142: the live table still names the duplicate that was freed.
TEST_CASE("a duplicate that was merged is not read any more") {
  SmallCache small(12);
  // Twins that start before either commits.
  FakeSequence first = small.start(ids(40), 24);
  FakeSequence second = small.start(ids(40), 24);
  first.compute();
  second.compute();
  first.commit();
  CHECK(small.cache.stats().blocks_in_use == 6);
  second.commit();
  CHECK(second.table().blocks()[0] == first.table().blocks()[0]);
  CHECK(second.table().blocks()[1] == first.table().blocks()[1]);
  CHECK(second.table().blocks()[2] != first.table().blocks()[2]);
  CHECK(small.cache.stats().blocks_in_use == 4);
  CHECK(small.cache.stats().blocks_cached == 2);
  // The freed duplicates are used again while both go on.
  for (TokenId i = 1; i < 10; ++i) small.run(ids(48, 1000 * i));
  for (TokenId i = 0; i < 20; ++i) {
    first.generate(i);
    second.generate(i + (i > 10 ? 500 : 0));
    first.compute();
    second.compute();
    first.commit();
    second.commit();
    CHECK(first.intact());
    CHECK(second.intact());
    small.cache.check_integrity();
  }
  first.drop();
  CHECK(second.intact());
}

TEST_CASE("a duplicate of what was forgotten and of what nobody holds is merged too") {
  SmallCache small(6);
  FakeSequence late = small.start(ids(32), 16);
  late.compute();
  small.run(ids(32));  // the same, and lets go of it
  CHECK(small.cache.stats().blocks_cached == 2);
  late.commit();
  CHECK(small.cache.stats().blocks_cached == 2);
  CHECK(small.cache.stats().blocks_in_use == 2);
  small.cache.check_integrity();
  small.run(ids(32, 1000));  // nobody's blocks are free for this
  CHECK(late.intact());
  late.drop();
  CHECK(small.known(ids(33)) == 32);
}

TEST_CASE("room that is promised can be had, however full the pool gets") {
  SmallCache small(20);
  small.run(ids(16 * 20));  // all blocks are cached
  FakeSequence a = small.start(ids(1, 1000), 16 * 7 - 1);
  FakeSequence b = small.start(ids(1, 2000), 16 * 8 - 1);
  CHECK(small.has_room(5));
  CHECK_FALSE(small.has_room(6));
  for (TokenId round = 0; round < 3; ++round) {
    small.run(ids(16 * 4, 3000 + 100 * round));
    // What is known costs no room, what is new does.
    FakeSequence pinned = small.start(ids(16 * 4, 3000 + 100 * round) + ids(1));
    CHECK(pinned.reused() == 64);
    CHECK_FALSE(small.has_room(1));
    for (int i = 0; i < 30; ++i) {
      for (FakeSequence* sequence : {&a, &b}) {
        if (sequence->tokens().size() == 16 * 7) continue;
        sequence->generate(i);
        sequence->compute();
        sequence->commit();
        CHECK(sequence->intact());
        small.cache.check_integrity();
      }
    }
    CHECK(pinned.intact());
  }
  CHECK(a.table().blocks().size() == 6);
}

TEST_CASE("extend() beyond what was promised is refused and changes nothing") {
  SmallCache small(4);
  FakeSequence sequence = small.start(ids(20), 12);
  small.cache.extend(sequence.table(), 32);
  CHECK(sequence.table().blocks().size() == 2);
  small.cache.extend(sequence.table(), 5);
  CHECK(sequence.table().blocks().size() == 2);
  CHECK_THROWS_AS(small.cache.extend(sequence.table(), 33), Error);
  CHECK(sequence.table().blocks().size() == 2);
  CHECK(small.cache.stats().blocks_in_use == 2);
  CHECK_THROWS_AS(small.cache.commit(sequence.table(), ids(48)), Error);
  small.cache.check_integrity();
}

TEST_CASE("where there is no room nothing changes") {
  SmallCache small(6);
  small.run(ids(32, 100));
  small.run(ids(32, 200));
  FakeSequence live = small.start(ids(1), 16 * 3 - 1);
  const CacheStats before = small.cache.stats();

  KvCache::Match match;
  REQUIRE(small.cache.start("n", ids(1, 900), 1, match));
  match.tokens = 77;
  const std::size_t in_use = small.cache.stats().blocks_in_use;
  // 2 blocks known, 2 new: 4 in all, where 2 are free or can be had.
  CHECK_FALSE(small.cache.start("n", ids(64, 100), 64, match));
  CHECK_FALSE(small.cache.start("n", ids(64, 100), 16 * 7, match));
  CHECK_FALSE(small.cache.start("n", ids(64, 100), SIZE_MAX, match));
  CHECK(match.tokens == 77);
  CHECK(small.cache.stats().blocks_in_use == in_use);
  CHECK(small.cache.stats().lookups == before.lookups + 1);
  CHECK(small.cache.stats().evictions == before.evictions);
  small.cache.check_integrity();
  match.table = {};
  live.drop();
  // The order of eviction is as it was: what could not start was not used.
  small.run(ids(48, 300));
  CHECK(small.known(ids(33, 100)) == 16);
  CHECK(small.known(ids(33, 200)) == 32);
}

TEST_CASE("a request for less than its prompt is a bug of the caller") {
  SmallCache small(6);
  KvCache::Match match;
  CHECK_THROWS_AS(small.cache.start("n", ids(17), 16, match), Error);
}

TEST_CASE("a sequence as large as the pool runs again and again") {
  SmallCache small(3);
  std::vector<std::size_t> reused;
  for (int i = 0; i < 3; ++i) {
    FakeSequence sequence = small.start(ids(48));
    reused.push_back(sequence.reused());
    sequence.compute();
    sequence.commit();
    CHECK(sequence.intact());
    small.cache.check_integrity();
  }
  CHECK(reused == std::vector<std::size_t>{0, 47, 47});
  CHECK(small.cache.stats().blocks_cached == 3);
}

TEST_CASE("the block that is copied from may be the one that is evicted") {
  SmallCache small(2);
  small.run(ids(32));
  // Holds the first block; the second is the only one that can be had, and its front is wanted.
  FakeSequence sequence = small.start(ids(20) + ids(12, 100));
  CHECK(sequence.reused() == 20);
  CHECK(small.cache.stats().evictions == 1);
  sequence.compute();
  CHECK(sequence.intact());
  sequence.commit();
  sequence.drop();
  CHECK(small.known(ids(32)) == 20);
  small.cache.check_integrity();
}

TEST_CASE("a device that fails to copy loses no block") {
  SmallCache small(4);
  small.run(ids(32));
  small.device.fail_copies = true;
  FakeSequence sequence(small.device, small.cache, "n");
  CHECK_THROWS_AS(sequence.start(ids(20), 30), std::runtime_error);
  small.cache.check_integrity();
  CHECK(small.cache.stats().blocks_in_use == 0);
  small.device.fail_copies = false;
  REQUIRE(sequence.start(ids(20), 30));
  CHECK(sequence.reused() == 19);
  sequence.compute();
  CHECK(sequence.intact());
}

}  // namespace
}  // namespace incipit::test
