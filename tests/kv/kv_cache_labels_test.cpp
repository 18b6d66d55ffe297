// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "incipit/error.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// What blocks know about the requests that used them, and what tiers note on them.

namespace incipit::test {
namespace {

using kv::KvCache;
using kv::LabelNames;
using kv::PathFacts;

struct Setup {
  explicit Setup(std::size_t blocks = 32) : cache(device, tiny_layout(), {.blocks = blocks}) {}

  FakeSequence run(const Tokens& prompt, const CacheLabels& labels = {},
                   const std::string& name_space = "n") {
    FakeSequence sequence(device, cache, name_space);
    REQUIRE(sequence.start(prompt, 0, labels));
    sequence.compute();
    sequence.commit();
    cache.check_integrity();
    return sequence;
  }
  PathFacts facts(const FakeSequence& sequence) { return cache.facts(sequence.table()); }
  LabelNames labels_of(const FakeSequence& sequence, std::size_t block) {
    const PathFacts facts = cache.facts(sequence.table());
    return facts.label_sets.at(facts.blocks.at(block).label_set);
  }

  FakeDevice device;
  KvCache cache;
};

TEST_CASE("a table's names and facts are those of its committed blocks") {
  Setup setup;
  FakeSequence sequence(setup.device, setup.cache, "space");
  REQUIRE(sequence.start(ids(40), 0, {.salt = "s", .version = "3"}));
  CHECK(setup.facts(sequence).blocks.empty());
  CHECK(setup.cache.names(sequence.table()).tokens.empty());
  sequence.compute();
  sequence.commit();
  const kv::PathNames names = setup.cache.names(sequence.table());
  CHECK(names.name_space == "space");
  CHECK(names.salt == "s");
  CHECK(names.version == "3");
  CHECK(names.tokens == ids(32));
  CHECK(setup.facts(sequence).blocks.size() == 2);
  CHECK(setup.labels_of(sequence, 0) == LabelNames{});

  const FakeSequence unnamed = setup.run(ids(40), {}, "");
  CHECK(setup.facts(unnamed).blocks.empty());
  CHECK(setup.cache.names(unnamed.table()).name_space.empty());
  setup.cache.clear();
  CHECK(setup.facts(sequence).blocks.empty());
  CHECK(setup.cache.names(sequence.table()).tokens.empty());
}

TEST_CASE("one namespace is one salt and one version") {
  Setup setup;
  const FakeSequence sequence = setup.run(ids(20), {.salt = "s", .version = "3"});
  KvCache::Match match;
  CHECK_THROWS_AS(setup.cache.start("n", {.salt = "t", .version = "3"}, ids(20), 20, match), Error);
  CHECK_THROWS_AS(setup.cache.start("n", {.salt = "s"}, ids(20), 20, match), Error);
  setup.cache.check_integrity();
  CHECK(setup.cache.owner_blocks("s") == 1);
  CHECK(setup.cache.owner_blocks("t") == 0);
}

TEST_CASE("hits are the requests that found a block or computed it again") {
  Setup setup;
  FakeSequence twin(setup.device, setup.cache, "n");
  REQUIRE(twin.start(ids(40)));
  const FakeSequence first = setup.run(ids(40));
  const auto hits = [&] {
    std::vector<std::uint32_t> all;
    for (const kv::BlockFacts& block : setup.facts(first).blocks) all.push_back(block.hits);
    return all;
  };
  CHECK(hits() == std::vector<std::uint32_t>{0, 0});
  setup.run(ids(20));
  CHECK(hits() == std::vector<std::uint32_t>{1, 0});
  twin.compute();
  twin.commit();
  twin.commit();
  CHECK(hits() == std::vector<std::uint32_t>{2, 1});
  setup.run(ids(60));
  CHECK(hits() == std::vector<std::uint32_t>{3, 2});
}

TEST_CASE("a block has the labels of all that used it") {
  Setup setup;
  const FakeSequence a = setup.run(ids(60), {.session = "a", .tags = {"x", "y", "x"}});
  CHECK(setup.labels_of(a, 2) ==
        LabelNames{.sessions = {"a"}, .common = false, .tags = {"x", "y"}});
  CHECK(setup.facts(a).label_sets.size() == 1);
  const FakeSequence b = setup.run(ids(40), {.session = "b", .tags = {"z"}});
  CHECK(setup.labels_of(a, 0) ==
        LabelNames{.sessions = {"a", "b"}, .common = false, .tags = {"x", "y", "z"}});
  CHECK(setup.labels_of(a, 0) == setup.labels_of(b, 1));
  CHECK(setup.labels_of(a, 2) ==
        LabelNames{.sessions = {"a"}, .common = false, .tags = {"x", "y"}});
  CHECK(setup.facts(a).label_sets.size() == 2);
  setup.run(ids(20));  // of no session
  CHECK(setup.labels_of(a, 0) == LabelNames{.common = true, .tags = {"x", "y", "z"}});
  // Twins have the labels of both.
  FakeSequence late(setup.device, setup.cache, "n");
  REQUIRE(late.start(ids(64, 500), 0, {.session = "late"}));
  const FakeSequence early = setup.run(ids(64, 500), {.session = "early"});
  late.compute();
  late.commit();
  CHECK(setup.labels_of(early, 3) == LabelNames{.sessions = {"early", "late"}, .common = false});
}

TEST_CASE("labels beyond the limits count as all") {
  Setup setup;
  FakeSequence sequence = setup.run(ids(20), {.session = "0", .tags = {"0"}});
  for (std::size_t i = 1; i < kv::LabelSets::kMaxSessions; ++i) {
    setup.run(ids(20), {.session = std::to_string(i)});
  }
  CHECK(setup.labels_of(sequence, 0).sessions.size() == kv::LabelSets::kMaxSessions);
  setup.run(ids(20), {.session = "one more"});
  CHECK(setup.labels_of(sequence, 0) == LabelNames{.common = true, .tags = {"0"}});
  CacheLabels many;
  for (std::size_t i = 0; i <= kv::LabelSets::kMaxTags; ++i) {
    many.tags.push_back(std::to_string(i));
  }
  setup.run(ids(20), many);
  CHECK(setup.labels_of(sequence, 0) == LabelNames{.common = true, .any_tag = true});
  CHECK(setup.cache.invalidate_tag("never heard of") == 1);
}

TEST_CASE("marks of tiers stay until the labels change") {
  Setup setup;
  FakeSequence sequence = setup.run(ids(70), {.session = "a"});
  const auto stored = [&] {
    std::vector<int> all;
    for (const kv::BlockFacts& block : setup.facts(sequence).blocks) all.push_back(block.stored);
    return all;
  };
  setup.cache.mark_stored(sequence.table(), 1, 2, 1);
  setup.cache.mark_stored(sequence.table(), 2, 100, 4);
  CHECK(stored() == std::vector<int>{0, 1, 5, 4});
  setup.run(ids(70), {.session = "a"});  // nothing new
  CHECK(stored() == std::vector<int>{0, 1, 5, 4});
  setup.cache.clear_stored(1);
  CHECK(stored() == std::vector<int>{0, 0, 4, 4});
  setup.run(ids(50), {.session = "b"});  // its third block was found, the fourth was not
  CHECK(stored() == std::vector<int>{0, 0, 0, 4});
  setup.cache.mark_stored(sequence.table(), 0, SIZE_MAX, 0x80);
  setup.cache.invalidate_session("b");
  CHECK(stored() == std::vector<int>{0, 0, 0, 0x84});
  setup.cache.mark_stored(sequence.table(), 9, 1, 1);
}

TEST_CASE("what was seen before a change of labels is not marked") {
  Setup setup;
  FakeSequence sequence = setup.run(ids(50), {.session = "a"});
  const PathFacts seen = setup.facts(sequence);
  setup.run(ids(20), {.session = "b"});
  setup.cache.mark_stored(sequence.table(), 0, seen.blocks, 2);
  const PathFacts now = setup.facts(sequence);
  CHECK(now.blocks[0].stored == 0);
  CHECK(now.blocks[0].labels_version == seen.blocks[0].labels_version + 1);
  CHECK(now.blocks[1].stored == 2);
  CHECK(now.blocks[2].stored == 2);
}

TEST_CASE("labels of what was stored are added to what is loaded") {
  Setup setup;
  FakeSequence sequence = setup.run(ids(50), {.session = "a"});
  setup.cache.mark_stored(sequence.table(), 0, 3, 1);
  setup.cache.add_labels(sequence.table(), 1, 1,
                         {.sessions = {"b"}, .common = false, .tags = {"t"}});
  setup.cache.check_integrity();
  CHECK(setup.labels_of(sequence, 0) == LabelNames{.sessions = {"a"}, .common = false});
  CHECK(setup.labels_of(sequence, 1) ==
        LabelNames{.sessions = {"a", "b"}, .common = false, .tags = {"t"}});
  CHECK(setup.facts(sequence).blocks[0].stored == 1);
  CHECK(setup.facts(sequence).blocks[1].stored == 0);
  setup.cache.add_labels(sequence.table(), 0, SIZE_MAX, {});
  CHECK(setup.labels_of(sequence, 2) == LabelNames{});
  CHECK(setup.cache.invalidate_tag("t") == 2);  // the second block and the one behind it
  setup.cache.check_integrity();
}

}  // namespace
}  // namespace incipit::test
