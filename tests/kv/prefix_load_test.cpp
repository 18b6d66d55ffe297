// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_load.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "fake_sequence.h"
#include "sealed_records.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "support/catch.h"
#include "support/fake_device.h"

namespace incipit::test {
namespace {

constexpr std::size_t kEnd = static_cast<std::size_t>(-1);

using kv::ColdTier;
using kv::PrefixLoad;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBlock = 16;                                // tokens
constexpr std::size_t kExtent = kv::kMaxExtentBlocks;             // blocks, of so small ones
constexpr std::size_t kBlockBytes = 128, kTokenBytes = 128 / 16;  // of KV

/// The right KV of a prompt of `blocks` blocks. Token by token, so that compute can write a part of
/// a block.
ByteVector right_kv(std::size_t blocks) { return pattern(blocks * kBlockBytes, 42); }

/// Counts who writes what: bytes of a block by compute, uploads of it by a load.
class WatchedDevice final : public FakeDevice {
 public:
  explicit WatchedDevice(std::size_t blocks) : uploads_(blocks), computed_(blocks) {}
  void watch(const std::byte* pool) { pool_ = pool; }

  void upload(base::Bytes from, std::byte* to) override {
    const auto block = static_cast<std::size_t>(to - pool_) / kBlockBytes;
    ++(from.size() == kBlockBytes ? uploads_ : computed_).at(block);
    if (failing) throw std::runtime_error("no upload today");
    FakeDevice::upload(from, to);
  }
  std::size_t uploads(device::BlockId block) const { return uploads_[block]; }
  std::size_t computed(device::BlockId block) const { return computed_[block]; }

  std::atomic<bool> failing = false;

 private:
  const std::byte* pool_ = nullptr;
  std::vector<std::atomic<std::size_t>> uploads_, computed_;
};

/// A prompt, what tiers have of it, and a table that waits for it.
struct Fixture {
  explicit Fixture(std::size_t blocks, milliseconds deadline = milliseconds(5000))
      : device(blocks + 3),
        cache(device, tiny_layout(), {.blocks = blocks + 3}),
        prompt(ids(blocks * kBlock + 1)),
        right(right_kv(blocks)),
        sealer(sealer_options(false)),
        first({.store = store, .deadline = deadline}, sealer),
        second({.store = second_store, .deadline = deadline}, sealer) {
    device.watch(cache.pool().data);
    REQUIRE(cache.start("n", prompt, prompt.size(), match));
    cache.extend(match.table, blocks * kBlock);
  }

  void write(ColdTier& tier, std::size_t blocks) {
    const auto chain = kv::prefix_chain("n", prompt);
    StoreBuffer record;
    for (std::size_t at = 0; at < blocks; at += kExtent) {
      kv::ExtentFacts facts;
      facts.first_block = static_cast<std::uint32_t>(at);
      facts.blocks = static_cast<std::uint32_t>(std::min(kExtent, blocks - at));
      facts.block_bytes = kBlockBytes;
      facts.parent = chain[at];
      facts.tokens = std::span(prompt).subspan(at * kBlock, facts.blocks * kBlock);
      const bool written = tier.write(
          facts, chain, {}, record,
          [&](std::span<std::byte> payload) {
            std::memcpy(payload.data(), right.data() + at * kBlockBytes, payload.size());
          },
          [] { return true; });
      REQUIRE(written);
    }
  }
  std::shared_ptr<PrefixLoad> load(std::size_t known = 0) {
    PrefixLoad::Options options;
    options.name_space = "n";
    options.tokens.assign(prompt.begin(), prompt.end() - 1);
    options.known = known;
    const auto blocks = match.table.blocks();
    options.target = {&device, cache.pool(), {blocks.begin(), blocks.end()}};
    options.on_change = [this] {
      if (on_change) on_change();
      ++changes;
    };
    options.begin = Clock::now();
    return std::make_shared<PrefixLoad>(std::vector<ColdTier*>{&first, &second},
                                        std::move(options));
  }
  std::byte* token(std::size_t position) const {
    return cache.pool().block(match.table.blocks()[position / kBlock]) +
           position % kBlock * kTokenBytes;
  }
  /// What a step of the model does.
  void compute(std::size_t begin, std::size_t count) {
    for (std::size_t at = begin; at < begin + count; ++at) {
      device.upload(std::span(right).subspan(at * kTokenBytes, kTokenBytes), token(at));
    }
  }
  /// As a scheduler: computes what does not arrive, `rows` at a time. Returns how much.
  std::size_t run(PrefixLoad& load, std::size_t computed, std::size_t rows) {
    std::size_t by_compute = 0;
    const std::size_t end = prompt.size() - 1;
    while ((computed = load.advance(computed)) < end) {
      const std::size_t claimed = load.claim(computed, std::min(rows, end - computed));
      if (claimed == 0) std::this_thread::yield();
      compute(computed, claimed);
      computed += claimed;
      by_compute += claimed;
    }
    return by_compute;
  }
  bool block_is_right(std::size_t at) const {
    return std::memcmp(token(at * kBlock), right.data() + at * kBlockBytes, kBlockBytes) == 0;
  }
  /// Every block from `known` on is right, and one of the two has written it, once.
  bool all_right(std::size_t known = 0) const {
    for (std::size_t at = known; at < prompt.size() / kBlock; ++at) {
      const device::BlockId block = match.table.blocks()[at];
      const bool loaded = device.uploads(block) == 1 && device.computed(block) == 0;
      const bool computed = device.uploads(block) == 0 && device.computed(block) == kBlock;
      if (!block_is_right(at) || loaded == computed) return false;
    }
    return true;
  }

  std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>();
  std::shared_ptr<FaultyStore> second_store = std::make_shared<FaultyStore>();
  WatchedDevice device;
  kv::KvCache cache;
  Tokens prompt;
  ByteVector right;
  kv::Sealer sealer;
  ColdTier first, second;
  kv::KvCache::Match match;
  std::atomic<int> changes = 0;
  std::function<void()> on_change = {};
};

TEST_CASE("all that a tier has is loaded, and no more") {
  const std::size_t stored = GENERATE(0u, 1u, 63u, 64u, 65u, 150u, 200u);
  Fixture fixture(200);
  fixture.write(fixture.first, stored);
  const auto load = fixture.load();
  CHECK_FALSE(load->finished(0));
  CHECK(load->search() == (stored + kExtent - 1) / kExtent);
  load->fetch();
  CHECK(load->advance(0) == stored * kBlock);
  CHECK(load->finished(stored * kBlock));
  CHECK(load->finished(0) == (stored == 0));  // what has arrived is still to be taken
  CHECK(load->advance(stored * kBlock) == stored * kBlock);
  CHECK(fixture.run(*load, 0, 100) == (200 - stored) * kBlock);
  CHECK(fixture.all_right());
  const PrefixLoad::Result result = load->take(kEnd);
  CHECK(result.tier == &fixture.first);
  std::size_t blocks = 0;
  for (const PrefixLoad::Loaded& part : result.loaded) {
    CHECK(part.first == blocks);
    blocks += part.blocks;
  }
  CHECK(blocks == stored);
}

TEST_CASE("what the pool has is not loaded") {
  const std::size_t known = GENERATE(1u, 63u, 64u, 70u, 128u, 129u);
  Fixture fixture(130);
  fixture.write(fixture.first, 130);
  fixture.compute(0, known * kBlock);
  const auto load = fixture.load(known);
  load->search();
  load->fetch();
  CHECK(load->advance(known * kBlock) == 130 * kBlock);
  // A part of a block that the pool had copied does not matter.
  CHECK(load->advance(known * kBlock + 5) == 130 * kBlock);
  CHECK(fixture.all_right());
  const PrefixLoad::Result taken = load->take(kEnd);
  REQUIRE_FALSE(taken.loaded.empty());
  CHECK(taken.loaded.front().first == known);
  CHECK(load->take(kEnd).loaded.empty());  // each part once
}

TEST_CASE("the tier that has most is taken, the first of equals") {
  Fixture fixture(100);
  fixture.write(fixture.first, 70);
  fixture.write(fixture.second, GENERATE(60u, 70u, 80u));
  const auto load = fixture.load();
  load->search();
  load->fetch();
  const bool second = fixture.second.store().size_bytes() > fixture.first.store().size_bytes();
  CHECK(load->take(kEnd).tier == (second ? &fixture.second : &fixture.first));
  CHECK(load->advance(0) == (second ? 80 : 70) * kBlock);
}

TEST_CASE("a pointer that contradicts itself is not followed") {
  Fixture fixture(200);
  fixture.write(fixture.first, 200);
  const auto chain = kv::prefix_chain("n", fixture.prompt);
  const StoreKey name = fixture.sealer.name(kv::RecordKind::kPointer, chain[200]);
  // Somebody with a hold of the store may write what he likes where there is no key.
  struct Place {
    std::uint32_t first_block, blocks;
  };
  const auto place = GENERATE(values<Place>({{0, 200},
                                             {0, 64},
                                             {0, 0xffffffff},
                                             {64, 1000},
                                             {1, 199},
                                             {192, 7},
                                             {256, 64},
                                             {0xffffffc0, 0xffffffff}}));
  const kv::Pointer pointer{chain[200], chain[200], place.first_block, place.blocks, {}};
  ByteVector body(pointer.bytes());
  kv::write_pointer(pointer, body);
  fixture.store->set_value(name, sealed(fixture.sealer, kv::RecordKind::kPointer, name, body));
  const auto load = fixture.load();
  CHECK(load->search() == 0);
  CHECK(load->finished(0));
  CHECK(fixture.run(*load, 0, 1000) == 200 * kBlock);
  CHECK(fixture.all_right());
}

TEST_CASE("compute takes from the front what has not come, whole extents at a time") {
  Fixture fixture(150);
  fixture.write(fixture.first, 150);
  const auto load = fixture.load();
  CHECK(load->claim(0, 5) == 5);  // nothing is known to come
  REQUIRE(load->search() == 3);
  CHECK(load->claim(0, 5) == 5);  // the first extent is compute's now
  CHECK(load->claim(5, 10000) == 10000);
  CHECK(load->finished(5));
  load->fetch();
  CHECK(load->take(kEnd).loaded.empty());
}

TEST_CASE("what compute has taken before the search ends is not loaded") {
  const std::size_t taken = GENERATE(1u, 16u, 17u, 1024u, 1025u, 150u * 16u);
  Fixture fixture(150);
  fixture.write(fixture.first, 150);
  const auto load = fixture.load();
  CHECK(load->claim(0, taken) == taken);
  fixture.compute(0, taken);
  load->search();
  load->fetch();
  CHECK(fixture.run(*load, taken, 5000) == (taken + 15) / 16 * 16 - taken);
  CHECK(fixture.all_right());
}

TEST_CASE("compute stops in front of what was loaded") {
  Fixture fixture(150);
  fixture.write(fixture.first, 150);
  fixture.store->erase(
      fixture.sealer.name(kv::RecordKind::kExtent, kv::prefix_chain("n", fixture.prompt)[64]),
      Store::Deadline::max());
  const auto load = fixture.load();
  REQUIRE(load->search() == 3);
  load->fetch();
  CHECK_FALSE(load->finished(0));
  CHECK(load->advance(0) == 0);
  CHECK(load->claim(0, 100000) == 64 * kBlock);
  CHECK(load->claim(64 * kBlock - 1, 100000) == 1);
  CHECK(load->claim(64 * kBlock, 1) == 0);
  CHECK(load->advance(64 * kBlock - 1) == 64 * kBlock - 1);
  CHECK(load->advance(64 * kBlock) == 150 * kBlock);
  CHECK_FALSE(load->finished(64 * kBlock));
  CHECK(load->finished(150 * kBlock));
}

TEST_CASE("an upload that fails is computed") {
  Fixture fixture(100);
  fixture.write(fixture.first, 100);
  const auto load = fixture.load();
  REQUIRE(load->search() == 2);
  fixture.device.failing = true;
  load->fetch();
  fixture.device.failing = false;
  CHECK(load->finished(0));
  CHECK(load->advance(0) == 0);
  CHECK(load->claim(0, 100 * kBlock) == 100 * kBlock);
}

/// Loading threads, as ColdTiers has them.
class Loaders {
 public:
  Loaders(std::shared_ptr<PrefixLoad> load, unsigned count) {
    threads_.emplace_back([this, load, count] {
      load->search();
      go_ = static_cast<int>(count) - 1;
      load->fetch();
    });
    for (unsigned i = 1; i < count; ++i) {
      threads_.emplace_back([this, load] {
        while (go_ < 0) std::this_thread::yield();
        load->fetch();
      });
    }
  }
  ~Loaders() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<int> go_ = -1;
  std::vector<std::thread> threads_;
};

TEST_CASE("compute and loading threads meet, and none writes what the other has") {
  struct Case {
    StoreFaults faults;
    milliseconds deadline;
  };
  const auto now = GENERATE(values<Case>({
      {{}, milliseconds(5000)},
      {{.delay = std::chrono::microseconds(300)}, milliseconds(5000)},
      {{.bytes_per_second = 5'000'000}, milliseconds(5000)},
      {{.fail_every = 5}, milliseconds(5000)},
      {{.throw_every = 5}, milliseconds(5000)},
      {{.corrupt_every = 4}, milliseconds(5000)},
      {{.swap_every = 3}, milliseconds(5000)},
      {{.drop_every = 3}, milliseconds(5000)},
      {{.hang = true}, milliseconds(20)},
      {{.ignore_deadline = true, .delay = std::chrono::microseconds(30000)}, milliseconds(10)},
  }));
  for (std::size_t rows : {std::size_t{7}, std::size_t{256}, std::size_t{5000}}) {
    Fixture fixture(300, now.deadline);
    fixture.write(fixture.first, 280);
    fixture.store->set(now.faults);
    const std::size_t known = rows == 7 ? 3 : 0;
    fixture.compute(0, known * kBlock);
    const auto load = fixture.load(known);
    {
      const Loaders loaders(load, 3);
      fixture.run(*load, known * kBlock, rows);
    }
    CHECK(load->finished(300 * kBlock));
    CHECK(fixture.all_right());
  }
}

TEST_CASE("nothing is written and nobody is told once a load is cancelled") {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    Fixture fixture(200);
    fixture.write(fixture.first, 200);
    fixture.store->set({.delay = std::chrono::microseconds(random() % 100)});
    const auto load = fixture.load();
    ByteVector at_cancel;
    int changes = 0;
    {
      const Loaders loaders(load, 3);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 2000));
      load->cancel();
      // Not atomic: a late writer is a race.
      at_cancel.assign(fixture.cache.pool().data,
                       fixture.cache.pool().data + fixture.cache.pool().blocks * kBlockBytes);
      changes = fixture.changes;
    }
    CHECK(std::equal(at_cancel.begin(), at_cancel.end(), fixture.cache.pool().data));
    CHECK(fixture.changes == changes);
    CHECK(load->finished(200 * kBlock));
    for (const PrefixLoad::Loaded& part : load->take(kEnd).loaded) {
      for (std::size_t i = 0; i < part.blocks; ++i) CHECK(fixture.block_is_right(part.first + i));
    }
    load->cancel();
  }
}

TEST_CASE("a load that is cancelled before its search loads nothing") {
  Fixture fixture(100);
  fixture.write(fixture.first, 100);
  const auto load = fixture.load();
  load->cancel();
  const std::uint64_t gets = fixture.store->gets();
  CHECK(load->search() == 0);
  load->fetch();
  CHECK(fixture.store->gets() == gets);
  CHECK(fixture.second_store->gets() == 0);
  CHECK(load->take(kEnd).loaded.empty());
  CHECK(fixture.changes == 0);
}

TEST_CASE("each arrival is told, and the end of the search") {
  Fixture fixture(150);
  fixture.write(fixture.first, 150);
  const auto load = fixture.load();
  load->search();
  CHECK(fixture.changes == 1);
  load->fetch();
  CHECK(fixture.changes == 1 + 3);
}

TEST_CASE("compute waits for a load in proportion to what it saves") {
  Fixture fixture(200);
  fixture.write(fixture.first, 200);
  const auto load = fixture.load();
  const auto wait = [&](std::size_t computed, std::size_t prompt, double rate) {
    return load->wait_until(computed, prompt, rate, load->begin()) - load->begin();
  };
  // 2 % of what would be computed, and 2 ms at least.
  CHECK(wait(0, 10'000, 1000) == milliseconds(200));
  CHECK(wait(5'000, 10'000, 1000) == milliseconds(100));
  CHECK(wait(0, 1000, 1e9) == milliseconds(2));
  CHECK(wait(0, 1'000'000'000, 1e-3) == std::chrono::hours(1));  // the most to reckon with
  // What was found changes nothing while nothing is known of the tier.
  REQUIRE(load->search() == 4);
  CHECK(wait(0, 10'000, 1000) == milliseconds(200));
  // Nothing is left to wait for.
  load->fetch();
  CHECK(wait(0, 10'000, 1000) <= milliseconds(0));
}

TEST_CASE("compute stays away as long as extents come fast, and begins where they do not") {
  Fixture fixture(200);
  fixture.write(fixture.first, 200);
  const auto load = fixture.load();
  REQUIRE(load->search() == 4);
  fixture.on_change = [&] { fixture.store->set({.delay = milliseconds(300)}); };
  std::thread loader([&] { load->fetch(); });
  while (fixture.changes < 2) std::this_thread::yield();  // the search, and the first extent
  // 192 blocks are left, and 8 have come in a time that is more than nothing.
  const auto now = Clock::now();
  CHECK(load->wait_until(0, 200 * kBlock, 1e12, now) == load->begin() + milliseconds(2));
  const auto until = load->wait_until(0, 100'000'000, 1000, now);
  CHECK(until >= load->begin() + std::chrono::seconds(2000));
  CHECK(until <= now + std::chrono::seconds(2000));
  load->cancel();
  loader.join();
}

}  // namespace
}  // namespace incipit::test
