// SPDX-License-Identifier: Apache-2.0
// Entries that are compressed: found by all who may, and by nobody otherwise than as they were.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/hash.h"
#include "fuzz/corpus.h"
#include "fuzz/mutations.h"
#include "kv/compression.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "store_with_hook.h"
#include "support/catch.h"
#include "tier_node.h"

namespace incipit::test {
namespace {

using kv::RecordKind;
using kv::Sealer;

constexpr std::size_t kFlags = 16;  // where they lie in a record's header
constexpr std::uint32_t kEncrypted = 1, kCompressed = 2;

std::uint32_t flags_of(const ByteVector& record) {
  std::uint32_t flags = 0;
  std::memcpy(&flags, record.data() + kFlags, sizeof(flags));
  return flags;
}

PrefixCacheOptions options_for(std::shared_ptr<Store> store, bool compress, bool encrypted) {
  PrefixCacheOptions options = with_tier(std::move(store));
  options.tiers[0].compress = compress;
  if (encrypted) options.encryption_key = [](std::uint32_t) { return ByteVector(32); };
  return options;
}

/// 64 blocks are an extent here, a third of whose bytes are the token ids.
const Tokens kPrompt = ids(16 * 100 + 4, 1000);
constexpr std::size_t kAll = 16 * 100;

TEST_CASE("processes that compress and those that do not read each other's entries") {
  const bool encrypted = GENERATE(false, true);
  const auto plain = std::make_shared<FaultyStore>(), small = std::make_shared<FaultyStore>();
  for (const bool compress : {false, true}) {
    const auto& store = compress ? small : plain;
    {
      TierNode node(options_for(store, compress, encrypted));
      node.serve(kPrompt);
      REQUIRE(node.flush());
    }
    std::size_t compressed = 0;
    for (const auto& [name, record] : store->values()) {
      const std::uint32_t flags = flags_of(record);
      CHECK((flags & kEncrypted) == (encrypted ? kEncrypted : 0));
      if ((flags & kCompressed) != 0) ++compressed;
    }
    CHECK(compressed == (compress ? 2 : 0));  // the extents
    for (const bool reader : {false, true}) {
      TierNode node(options_for(store, reader, encrypted));
      const Served served = node.serve(kPrompt);
      CHECK(served.from_tiers == kAll);
      CHECK(served.intact);
      CHECK(node.registry().stats().tiers[0].rejected == 0);
    }
    CHECK(TierNode(options_for(store, true, !encrypted)).look(kPrompt).found() == 0);
  }
  CHECK(small->size_bytes() < plain->size_bytes());
}

TEST_CASE("damage of a compressed entry costs time and nothing else") {
  const bool encrypted = GENERATE(false, true);
  const Tokens prompt = ids(16 * 60 + 4, 1000);  // one extent
  const auto store = std::make_shared<FaultyStore>();
  {
    TierNode node(options_for(store, true, encrypted));
    node.serve(prompt);
    REQUIRE(node.flush());
  }
  for (const auto& [name, record] : store->values()) {
    if ((flags_of(record) & kCompressed) == 0) continue;
    for (std::size_t at = 0; at < record.size(); at += record.size() / 50) {
      FaultyStore::Value damaged = record;
      damaged[at] ^= std::byte{1} << at % 8;
      store->set_value({name}, damaged);
      const Served served = TierNode(options_for(store, true, encrypted)).look(prompt);
      CHECK(served.intact);
      CHECK(served.found() == 0);
    }
    store->set_value({name}, record);
  }
  CHECK(TierNode(options_for(store, true, encrypted)).look(prompt).from_tiers == 16 * 60);
}

/// A record that its store's owner has made: without a key anybody can.
ByteVector forged(const Sealer& sealer, RecordKind kind, const StoreKey& name,
                  const ByteVector& body, std::uint32_t flags) {
  ByteVector record = sealed(sealer, kind, name, body);
  std::memcpy(record.data() + kFlags, &flags, sizeof(flags));
  const auto all = std::span<const std::byte>(record);
  const auto sum = base::xxh3_128(all.subspan(Sealer::kHeaderBytes, body.size()),
                                  base::xxh3_64(all.first(Sealer::kHeaderBytes)));
  std::ranges::copy(sum, record.end() - static_cast<std::ptrdiff_t>(Sealer::kTrailerBytes));
  return record;
}

TEST_CASE("a record is decompressed where it is expected, and to what is expected at most") {
  const Sealer sealer(sealer_options(false));
  const StoreKey name = sealer.name(RecordKind::kExtent, pattern(32, 1));
  const ByteVector zeros(100'000);
  ByteVector body = zeros;
  const auto size = kv::compress(body, 4);
  REQUIRE(size);
  body.resize(*size);
  const auto open = [&](const ByteVector& record, std::size_t most) {
    StoreBuffer buffer = buffer_of(record);
    const auto found = sealer.open(buffer, RecordKind::kExtent, name, most);
    return found ? std::optional(ByteVector(found->begin(), found->end())) : std::nullopt;
  };
  const ByteVector bomb = forged(sealer, RecordKind::kExtent, name, body, kCompressed);
  CHECK(open(bomb, zeros.size()) == zeros);
  CHECK_FALSE(open(bomb, zeros.size() - 1));
  CHECK_FALSE(open(bomb, 0));
  // Flags that nobody knows, and bytes that were never compressed.
  CHECK_FALSE(open(forged(sealer, RecordKind::kExtent, name, body, kCompressed | 4), 1 << 20));
  CHECK_FALSE(open(forged(sealer, RecordKind::kExtent, name, zeros, kCompressed), 1 << 20));
  CHECK_FALSE(
      open(forged(sealer, RecordKind::kExtent, name, body, kCompressed | kEncrypted), 1 << 20));
  CHECK(open(forged(sealer, RecordKind::kExtent, name, body, 0), 1 << 20) == body);
}

TEST_CASE("what a byte of KV takes counts its share of what the store has to move") {
  const auto store = std::make_shared<StoreWithHook>(std::make_shared<FaultyStore>());
  FakeClock clock;
  const Sealer sealer(sealer_options(false, clock));
  const bool compress = GENERATE(false, true);
  kv::ColdTier tier({.store = store, .deadline = std::chrono::hours(1), .compress = compress},
                    sealer, clock.steady());
  constexpr std::uint32_t kBlocks = 64, kBlockBytes = 4096;
  const Tokens tokens = ids(16 * kBlocks);
  const auto chain = kv::prefix_chain("n", tokens);
  kv::ExtentFacts facts;
  facts.blocks = kBlocks;
  facts.block_bytes = kBlockBytes;
  facts.parent = chain[0];
  facts.tokens = tokens;
  facts.value_bytes = 2;
  ByteVector kv = pattern(facts.payload_bytes(), 7);
  for (std::size_t i = 1; i < kv.size(); i += 2) kv[i] &= std::byte{3};
  StoreBuffer record;
  REQUIRE(tier.write(
      facts, chain, {}, record,
      [&](std::span<std::byte> payload) { std::ranges::copy(kv, payload.begin()); },
      [] { return true; }));
  CHECK_FALSE(tier.seconds_per_byte());
  store->after_get = [&] { clock.move(1); };
  StoreBuffer buffer;
  const auto extent = tier.read(chain[kBlocks], facts, buffer);
  REQUIRE(extent);
  CHECK(std::ranges::equal(extent->payload, kv));
  CHECK((tier.stats().read_bytes < kv.size()) == compress);
  // A second for all of it, however much that was in the store.
  const auto seconds = tier.seconds_per_byte();
  REQUIRE(seconds);
  CHECK(*seconds * static_cast<double>(facts.facts_bytes() + kv.size()) == Approx(1));
}

TEST_CASE("compressed bodies survive mutations") {
  fuzz::run_corpus(fuzz::kCompression, "compression");
  fuzz::run_mutations(fuzz::kCompression, 3000);
}

}  // namespace
}  // namespace incipit::test
