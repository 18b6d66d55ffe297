// SPDX-License-Identifier: Apache-2.0
#include "kv/entry.h"

#include <cstring>
#include <set>
#include <string>

#include "fake_sequence.h"
#include "fuzz/corpus.h"
#include "fuzz/mutations.h"
#include "incipit/error.h"
#include "sealed_records.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using kv::Digest256;
using kv::EntryLabels;
using kv::ExtentFacts;
using kv::LabelKind;
using kv::Pointer;

// Where things lie in the body of an extent, and of a pointer.
constexpr std::size_t kBlocks = 4, kBlockBytes = 8, kExtentLabels = 48;
constexpr std::size_t kPointerLabels = 72;
constexpr std::size_t kLabelBytes = 32;

Digest256 digest(int number) { return base::sha256(base::as_bytes(std::to_string(number))); }

std::vector<kv::LabelEpoch> some_labels(std::size_t count, int seed) {
  std::vector<kv::LabelEpoch> labels;
  for (std::size_t i = 0; i < count; ++i) {
    kv::LabelEpoch label{
        kv::label_digest(LabelKind::kTag, std::to_string(seed + static_cast<int>(i))), {}};
    label.epoch.fill(static_cast<std::byte>(0x80 | i));  // no count
    labels.push_back(label);
  }
  return labels;
}

EntryLabels entry_labels(std::size_t all, std::size_t any) {
  return {some_labels(all, 1000), some_labels(any, 2000)};
}
bool same(const EntryLabels& a, const EntryLabels& b) { return a.all == b.all && a.any == b.any; }

struct Written {
  Tokens tokens;
  ExtentFacts facts;
  ByteVector payload;
  ByteVector body;
};

Written write_extent(std::uint32_t blocks, EntryLabels labels, std::uint64_t block_bytes = 10) {
  Written made;
  made.tokens = ids(blocks * 16, 100);
  made.facts.first_block = 7;
  made.facts.blocks = blocks;
  made.facts.block_bytes = block_bytes;
  made.facts.parent = digest(1);
  made.facts.labels = std::move(labels);
  made.facts.tokens = made.tokens;
  made.payload = pattern(made.facts.payload_bytes(), 5);
  made.body.resize(made.facts.facts_bytes() + made.payload.size());
  const std::span<std::byte> room = kv::write_extent(made.facts, made.body);
  REQUIRE(room.size() == made.payload.size());
  std::ranges::copy(made.payload, room.begin());
  return made;
}

void put(ByteVector& body, std::size_t at, auto value) {
  std::memcpy(body.data() + at, &value, sizeof(value));
}

TEST_CASE("an extent is read as it was written") {
  const std::size_t all = GENERATE(0u, 1u, 6u, 256u);
  const std::size_t any = GENERATE(0u, 1u, 16u, 256u);
  const auto blocks = GENERATE(as<std::uint32_t>(), 1, 2, 64);
  const Written made = write_extent(blocks, entry_labels(all, any));
  const auto read = kv::read_extent(made.body, made.facts);
  REQUIRE(read);
  CHECK(same(read->labels, made.facts.labels));
  CHECK(std::ranges::equal(read->payload, made.payload));
}

TEST_CASE("an extent may hold more than is wanted, not less") {
  const Written made = write_extent(5, entry_labels(2, 1));
  for (std::uint32_t blocks = 1; blocks <= 7; ++blocks) {
    const Tokens tokens = ids(blocks * 16, 100);
    ExtentFacts wanted = made.facts;
    wanted.blocks = blocks;
    wanted.tokens = tokens;
    wanted.labels = {};  // those do not matter
    const auto read = kv::read_extent(made.body, wanted);
    CHECK(read.has_value() == (blocks <= 5));
    if (read) CHECK(std::ranges::equal(read->payload, std::span(made.payload).first(blocks * 10)));
  }
}

TEST_CASE("an extent that is another in anything is none") {
  const Written made = write_extent(3, entry_labels(1, 1));
  ExtentFacts wanted = made.facts;
  wanted.first_block = 6;
  CHECK_FALSE(kv::read_extent(made.body, wanted));
  wanted = made.facts;
  wanted.block_bytes = 11;
  CHECK_FALSE(kv::read_extent(made.body, wanted));
  wanted = made.facts;
  wanted.parent = digest(2);
  CHECK_FALSE(kv::read_extent(made.body, wanted));
  int believed = 0;
  for (std::size_t at = 0; at < made.tokens.size(); ++at) {
    Tokens tokens = made.tokens;
    tokens[at] ^= 1 << at % 31;
    wanted = made.facts;
    wanted.tokens = tokens;
    if (kv::read_extent(made.body, wanted)) ++believed;
  }
  CHECK(believed == 0);
}

TEST_CASE("a body that is cut or goes on is none") {
  const Written made = write_extent(2, entry_labels(2, 1));
  int believed = 0;
  for (std::size_t size = 0; size < made.body.size(); ++size) {
    // A copy, so that a read beyond the end is one beyond an allocation.
    const ByteVector cut(made.body.begin(), made.body.begin() + static_cast<std::ptrdiff_t>(size));
    if (kv::read_extent(cut, made.facts)) ++believed;
    if (kv::read_pointer(cut, digest(1))) ++believed;
  }
  ByteVector longer = made.body;
  longer.push_back({});
  if (kv::read_extent(longer, made.facts)) ++believed;
  CHECK(believed == 0);
}

TEST_CASE("no number in an extent is believed") {
  const Written made = write_extent(2, entry_labels(1, 1));
  for (const std::uint32_t count : {0u, 2u, 257u, 0x05555556u, 0x7fffffffu, 0xffffffffu}) {
    ByteVector body = made.body;
    put(body, kExtentLabels, count);
    CHECK_FALSE(kv::read_extent(body, made.facts));
    body = made.body;
    put(body, kExtentLabels + 4 + kLabelBytes, count);
    CHECK_FALSE(kv::read_extent(body, made.facts));
  }
  for (const std::uint32_t blocks : {0u, 1u, 3u, 64u, 65u, 0x10000000u, 0xffffffffu}) {
    ByteVector body = made.body;
    put(body, kBlocks, blocks);
    CHECK_FALSE(kv::read_extent(body, made.facts));
  }
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1} << 63, UINT64_MAX}) {
    ByteVector body = made.body;
    put(body, kBlockBytes, bytes);
    CHECK_FALSE(kv::read_extent(body, made.facts));
    ExtentFacts wanted = made.facts;
    wanted.block_bytes = bytes;  // 2 of them overflow
    CHECK_FALSE(kv::read_extent(body, wanted));
  }
}

TEST_CASE("extents that nobody could read are not written") {
  const Tokens tokens = ids(65 * 16);
  ExtentFacts facts;
  facts.blocks = 65;
  facts.block_bytes = 1;
  facts.tokens = tokens;
  ByteVector body(facts.facts_bytes() + facts.payload_bytes());
  CHECK_THROWS_AS(kv::write_extent(facts, body), Error);
  facts.blocks = 1;
  facts.tokens = std::span(tokens).first(16);
  facts.labels = entry_labels(257, 0);
  body.resize(facts.facts_bytes() + facts.payload_bytes());
  CHECK_THROWS_AS(kv::write_extent(facts, body), Error);
}

ByteVector bytes_of(const Pointer& pointer) {
  ByteVector body(pointer.bytes());
  kv::write_pointer(pointer, body);
  return body;
}

TEST_CASE("a pointer is read as it was written, for its prefix alone") {
  const std::size_t count = GENERATE(0u, 1u, 256u);
  const Pointer pointer{digest(1), digest(2), 64, 17, entry_labels(count, count)};
  const ByteVector body = bytes_of(pointer);
  const auto read = kv::read_pointer(body, digest(1));
  REQUIRE(read);
  CHECK(read->prefix == digest(1));
  CHECK(read->extent == digest(2));
  CHECK(read->first_block == 64);
  CHECK(read->blocks == 17);
  CHECK(same(read->labels, pointer.labels));
  CHECK_FALSE(kv::read_pointer(body, digest(2)));
  CHECK_FALSE(kv::read_pointer(body, {}));
}

TEST_CASE("a pointer that is cut, goes on or counts wrong is none") {
  const ByteVector body = bytes_of({digest(1), digest(2), 64, 17, entry_labels(2, 1)});
  int believed = 0;
  for (std::size_t size = 0; size < body.size(); ++size) {
    const ByteVector cut(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size));
    if (kv::read_pointer(cut, digest(1))) ++believed;
  }
  ByteVector longer = body;
  longer.push_back({});
  if (kv::read_pointer(longer, digest(1))) ++believed;
  for (const std::uint32_t count : {0u, 1u, 3u, 257u, 0x7fffffffu, 0xffffffffu}) {
    ByteVector other = body;
    put(other, kPointerLabels, count);
    if (kv::read_pointer(other, digest(1))) ++believed;
  }
  CHECK(believed == 0);
}

TEST_CASE("labels of different kinds or names have different digests") {
  std::set<kv::LabelDigest> digests;
  for (int kind = 0; kind <= 5; ++kind) {
    for (const std::string_view name : {"", "a", "b", "aa"}) {
      digests.insert(kv::label_digest(static_cast<LabelKind>(kind), name));
    }
  }
  CHECK(digests.size() == 6 * 4);
}

TEST_CASE("records survive mutations") {
  fuzz::run_corpus(fuzz::kEntry, "entry");
  fuzz::run_mutations(fuzz::kEntry, 20'000);
}

}  // namespace
}  // namespace incipit::test
