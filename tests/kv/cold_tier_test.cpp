// SPDX-License-Identifier: Apache-2.0
#include "kv/cold_tier.h"

#include <random>
#include <set>

#include "fake_sequence.h"
#include "sealed_records.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::ColdTier;
using kv::Digest256;
using kv::ExtentFacts;

constexpr std::size_t kStep = 4;          // blocks of a whole extent
constexpr std::uint64_t kBlockBytes = 8;  // of KV

/// What block `at` of any prefix holds.
ByteVector block_kv(std::size_t at) { return pattern(kBlockBytes, at); }

struct Fixture {
  explicit Fixture(bool encrypted = false, std::size_t blocks = 200)
      : tokens(ids(16 * blocks)),
        chain(kv::prefix_chain("n", tokens)),
        sealer(sealer_options(encrypted, clock)),
        tier({.store = store}, sealer, clock.steady()) {}

  ExtentFacts facts(std::size_t first, std::size_t blocks) const {
    ExtentFacts facts;
    facts.first_block = static_cast<std::uint32_t>(first);
    facts.blocks = static_cast<std::uint32_t>(blocks);
    facts.block_bytes = kBlockBytes;
    facts.parent = chain[first];
    facts.tokens = std::span(tokens).subspan(16 * first, 16 * blocks);
    return facts;
  }
  bool write(std::size_t first, std::size_t blocks, const kv::EntryLabels& labels = {}) {
    ExtentFacts extent = facts(first, blocks);
    extent.labels = labels;
    StoreBuffer record;
    return tier.write(
        extent, chain, {}, record,
        [&](std::span<std::byte> payload) {
          for (std::size_t i = 0; i < blocks; ++i) {
            std::ranges::copy(block_kv(first + i), payload.subspan(i * kBlockBytes).begin());
          }
        },
        [] { return true; });
  }
  /// A prefix, front to back.
  bool write_prefix(std::size_t blocks) {
    for (std::size_t first = 0; first < blocks; first += kStep) {
      if (!write(first, std::min(kStep, blocks - first))) return false;
    }
    return true;
  }
  /// Blocks that are found of a prompt with `wanted`; 0: no more than are known.
  std::size_t find(std::size_t wanted, std::size_t known = 0) {
    const auto found = tier.find(std::span(chain).first(wanted + 1), known);
    if (!found) return 0;
    REQUIRE(found->pointer.prefix == chain[found->blocks]);
    return found->blocks;
  }
  enum class Got { kNothing, kRight, kWrong };
  Got read(std::size_t extent_end, std::size_t first, std::size_t blocks) {
    StoreBuffer buffer;
    const auto extent = tier.read(chain[extent_end], facts(first, blocks), buffer);
    if (!extent) return Got::kNothing;
    if (extent->payload.size() != blocks * kBlockBytes) return Got::kWrong;
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto block = extent->payload.subspan(i * kBlockBytes, kBlockBytes);
      if (!std::ranges::equal(block, block_kv(first + i))) return Got::kWrong;
    }
    return Got::kRight;
  }
  StoreKey pointer_name(std::size_t blocks) const {
    return sealer.name(kv::RecordKind::kPointer, chain[blocks]);
  }
  StoreKey extent_name(std::size_t end) const {
    return sealer.name(kv::RecordKind::kExtent, chain[end]);
  }
  void lose(const StoreKey& name) { store->erase(name, Store::Deadline::max()); }
  void damage(const StoreKey& name) {
    ByteVector record = store->values().at(name.bytes);
    record[record.size() / 2] ^= std::byte{4};
    store->set_value(name, record);
  }
  std::uint64_t rejected() const { return tier.stats().rejected; }

  FakeClock clock;
  std::shared_ptr<FaultyStore> store = std::make_shared<FaultyStore>();
  Tokens tokens;
  std::vector<Digest256> chain;
  kv::Sealer sealer;
  ColdTier tier;
};
using Got = Fixture::Got;

TEST_CASE("extents are about 4 MiB and never none") {
  CHECK(kv::extent_blocks(1) == kv::kMaxExtentBlocks);
  CHECK(kv::extent_blocks(kv::kExtentBytes / 64) == 64);
  CHECK(kv::extent_blocks(kv::kExtentBytes / 64 + 1) == 63);
  CHECK(kv::extent_blocks(360 << 10) == 11);
  CHECK(kv::extent_blocks(kv::kExtentBytes) == 1);
  CHECK(kv::extent_blocks(kv::kExtentBytes + 1) == 1);
  CHECK(kv::extent_blocks(std::size_t{1} << 40) == 1);
}

TEST_CASE("the longest stored part of a prompt is found") {
  const std::size_t stored = GENERATE(0u, 1u, 3u, 4u, 5u, 50u, 199u, 200u);
  Fixture fixture;
  REQUIRE(fixture.write_prefix(stored));
  for (const std::size_t wanted : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 50u, 51u, 128u, 200u}) {
    for (std::size_t known = 0; known <= wanted; ++known) {
      const std::size_t there = std::min(stored, wanted);
      const std::size_t found = fixture.find(wanted, known);
      if (found != (there > known ? there : 0)) {
        FAIL("found " << found << " of " << wanted << " with " << known << " known");
      }
    }
  }
  CHECK(fixture.rejected() == 0);
}

TEST_CASE("finding takes few reads, whatever is asked for") {
  Fixture fixture;
  REQUIRE(fixture.write_prefix(77));
  const std::uint64_t before = fixture.store->gets();
  CHECK(fixture.find(200) == 77);
  CHECK(fixture.store->gets() - before <= 10);
  const std::uint64_t hit = fixture.store->gets();
  CHECK(fixture.find(77) == 77);
  CHECK(fixture.store->gets() - hit == 1);
}

TEST_CASE("what is found can be read, from the extent that its pointer names") {
  Fixture fixture(GENERATE(false, true), 30);
  REQUIRE(fixture.write_prefix(30));
  for (std::size_t blocks = 1; blocks <= 30; ++blocks) {
    const auto found = fixture.tier.find(std::span(fixture.chain).first(blocks + 1), 0);
    REQUIRE(found);
    CHECK(found->blocks == blocks);
    const std::size_t first = (blocks - 1) / kStep * kStep;
    CHECK(found->pointer.first_block == first);
    const std::size_t end = first + found->pointer.blocks;
    CHECK(end == std::min(first + kStep, std::size_t{30}));
    CHECK(found->pointer.extent == fixture.chain[end]);
    CHECK(fixture.read(end, first, blocks - first) == Got::kRight);
  }
}

TEST_CASE("a short last extent is stored, and superseded by a longer one") {
  Fixture fixture;
  REQUIRE(fixture.write(0, 3));
  CHECK(fixture.find(100) == 3);
  CHECK(fixture.read(3, 0, 3) == Got::kRight);
  REQUIRE(fixture.write(0, 4));
  REQUIRE(fixture.write(4, 2));
  CHECK(fixture.find(100) == 6);
  for (std::size_t blocks = 1; blocks <= 4; ++blocks) {
    const auto found = fixture.tier.find(std::span(fixture.chain).first(blocks + 1), 0);
    REQUIRE(found);
    CHECK(found->pointer.extent == fixture.chain[4]);
  }
  CHECK(fixture.read(4, 0, 2) == Got::kRight);
  CHECK(fixture.read(4, 0, 4) == Got::kRight);
}

TEST_CASE("another prompt's blocks are not found") {
  Fixture fixture;
  REQUIRE(fixture.write_prefix(8));
  Tokens other = fixture.tokens;
  other[16 * 5] ^= 1;
  const auto chain = kv::prefix_chain("n", other);
  const auto found = fixture.tier.find(chain, 0);
  REQUIRE(found);
  CHECK(found->blocks == 5);
  CHECK_FALSE(fixture.tier.find(kv::prefix_chain("m", fixture.tokens), 0));
  // Nor read: the tokens prove it, whatever name the extent has.
  ExtentFacts wanted = fixture.facts(4, 4);
  wanted.tokens = std::span(other).subspan(16 * 4, 16 * 4);
  StoreBuffer buffer;
  CHECK_FALSE(fixture.tier.read(fixture.chain[8], wanted, buffer));
  CHECK(fixture.rejected() == 1);
}

TEST_CASE("what is missing is not found and not read") {
  Fixture fixture;
  REQUIRE(fixture.write_prefix(20));
  fixture.lose(fixture.extent_name(8));
  CHECK(fixture.find(20) == 20);
  CHECK(fixture.read(8, 4, 4) == Got::kNothing);
  CHECK(fixture.read(12, 8, 4) == Got::kRight);
  fixture.lose(fixture.pointer_name(20));
  CHECK(fixture.find(20) == 19);
  CHECK(fixture.rejected() == 0);
  REQUIRE(fixture.write(4, 4));
  CHECK(fixture.read(8, 4, 4) == Got::kRight);
}

TEST_CASE("with any pointers missing, what is found is there") {
  Fixture fixture(false, 40);
  REQUIRE(fixture.write_prefix(40));
  const auto whole = fixture.store->values();
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::set<std::size_t> lost;
    for (const auto& [name, value] : whole) fixture.store->set_value({name}, value);
    fixture.clock.move(2);  // misses are forgotten
    for (std::size_t i = 0, count = 1 + random() % 20; i < count; ++i) {
      const std::size_t blocks = 1 + random() % 40;
      fixture.lose(fixture.pointer_name(blocks));
      lost.insert(blocks);
    }
    const std::size_t wanted = 1 + random() % 40, known = random() % (wanted + 1);
    const std::size_t found = fixture.find(wanted, known);
    const bool right = found == 0 || (found > known && found <= wanted && !lost.contains(found));
    CHECK(right);
    if (!lost.contains(wanted) && wanted > known) CHECK(found == wanted);
  }
}

TEST_CASE("what is damaged is rejected, counted, and can be stored again") {
  Fixture fixture(GENERATE(false, true));
  REQUIRE(fixture.write_prefix(4));
  fixture.damage(fixture.pointer_name(4));
  CHECK(fixture.find(4) == 3);
  CHECK(fixture.rejected() == 1);
  fixture.damage(fixture.extent_name(4));
  CHECK(fixture.read(4, 0, 4) == Got::kNothing);
  CHECK(fixture.rejected() == 2);
  // A valid record under another name is no better.
  const auto values = fixture.store->values();
  fixture.store->set_value(fixture.pointer_name(4), values.at(fixture.pointer_name(3).bytes));
  CHECK(fixture.find(4) == 3);
  CHECK(fixture.rejected() == 3);
  REQUIRE(fixture.write_prefix(4));
  CHECK(fixture.find(4) == 4);
  CHECK(fixture.read(4, 0, 4) == Got::kRight);
}

TEST_CASE("what was forgotten is neither found nor read, and is no damage") {
  Fixture fixture;
  const kv::LabelDigest tag = kv::label_digest(kv::LabelKind::kTag, "t");
  const kv::LabelDigest session = kv::label_digest(kv::LabelKind::kSession, "s");
  kv::EntryLabels labels{*fixture.tier.epochs().current(std::span(&tag, 1)), {}};
  REQUIRE(fixture.write(0, 4));
  REQUIRE(fixture.write(4, 4, labels));
  labels.any = *fixture.tier.epochs().current(std::span(&session, 1));
  REQUIRE(fixture.write(8, 4, labels));
  CHECK(fixture.find(20) == 12);
  CHECK(fixture.read(12, 8, 4) == Got::kRight);

  REQUIRE(fixture.tier.epochs().renew(session));
  CHECK(fixture.find(20) == 8);
  CHECK(fixture.read(12, 8, 4) == Got::kNothing);
  CHECK(fixture.read(8, 4, 4) == Got::kRight);
  REQUIRE(fixture.tier.epochs().renew(tag));
  CHECK(fixture.find(20) == 4);
  CHECK(fixture.read(8, 4, 4) == Got::kNothing);
  CHECK(fixture.read(4, 0, 4) == Got::kRight);
  CHECK(fixture.rejected() == 0);
}

TEST_CASE("entries expire by the wall clock") {
  Fixture fixture;
  StoreBuffer record;
  REQUIRE(fixture.tier.write(
      fixture.facts(0, 2), fixture.chain, std::chrono::seconds(100), record,
      [](std::span<std::byte>) {}, [] { return true; }));
  CHECK(fixture.find(2) == 2);
  fixture.clock.move(100);
  CHECK(fixture.find(2) == 0);
}

StoreFaults fault(int kind, unsigned every) {
  StoreFaults faults;
  unsigned* const of_kind[] = {&faults.fail_every,     &faults.throw_every,   &faults.lose_every,
                               &faults.drop_every,     &faults.corrupt_every, &faults.swap_every,
                               &faults.truncate_every, &faults.extend_every};
  *of_kind[kind] = every;
  return faults;
}

TEST_CASE("whatever a store does wrong, nothing wrong is found or read") {
  const int kind = GENERATE(range(0, 8));
  const bool encrypted = GENERATE(false, true);
  int wrong = 0, right = 0;
  for (unsigned every = 1; every <= 12; ++every) {
    Fixture fixture(encrypted, 21);
    fixture.store->set(fault(kind, every));
    fixture.write_prefix(21);
    fixture.clock.move(60);
    for (std::size_t wanted = 1; wanted <= 21; ++wanted) {
      const auto found = fixture.tier.find(std::span(fixture.chain).first(wanted + 1), 0);
      if (!found) continue;
      if (found->blocks > wanted || found->pointer.prefix != fixture.chain[found->blocks]) ++wrong;
      const std::size_t first = found->pointer.first_block;
      const Got got = fixture.read(first + found->pointer.blocks, first, found->blocks - first);
      if (got == Got::kWrong) ++wrong;
      if (got == Got::kRight) ++right;
    }
  }
  CHECK(wrong == 0);
  CHECK(right > 0);  // every 12th fault leaves something
}

TEST_CASE("a tier that refuses the extent gets no pointers") {
  Fixture fixture;
  fixture.store->set({.down = true});
  CHECK_FALSE(fixture.write(0, 4));
  CHECK(fixture.store->puts() == 1);
  CHECK(fixture.store->values().empty());
}

TEST_CASE("a tier counts what it does") {
  Fixture fixture;
  REQUIRE(fixture.write_prefix(4));
  fixture.find(4);
  fixture.find(8);
  fixture.tier.count_reuse(48);
  const TierStats stats = fixture.tier.stats();
  CHECK(stats.name == "faulty");
  CHECK(stats.bytes == fixture.store->size_bytes());
  CHECK(stats.tokens_reused == 48);
  CHECK(stats.writes == 5);
  CHECK(stats.written_bytes == stats.bytes);
  CHECK(stats.reads == fixture.store->gets());
  CHECK(stats.read_hits >= 2);
  CHECK(stats.read_bytes > 0);
  CHECK(stats.failures == 0);
  CHECK_FALSE(stats.open);
}

}  // namespace
}  // namespace incipit::test
