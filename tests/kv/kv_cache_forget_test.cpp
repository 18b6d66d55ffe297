// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// Invalidation: what goes, what stays, and what running sequences may still do.

namespace incipit::test {
namespace {

using kv::KvCache;

struct Setup {
  explicit Setup(std::size_t blocks = 64)
      : cache(device, tiny_layout(), {.blocks = blocks, .poison_freed_blocks = true}) {}

  FakeSequence start(const Tokens& prompt, std::size_t more = 0, const CacheLabels& labels = {},
                     const std::string& name_space = "n") {
    FakeSequence sequence(device, cache, name_space);
    REQUIRE(sequence.start(prompt, more, labels));
    return sequence;
  }
  void run(const Tokens& prompt, const CacheLabels& labels = {},
           const std::string& name_space = "n") {
    FakeSequence sequence = start(prompt, 0, labels, name_space);
    sequence.compute();
    sequence.commit();
    REQUIRE(sequence.intact());
  }
  std::size_t known(const Tokens& prompt, const std::string& name_space = "n") {
    cache.check_integrity();
    return cache.explain_miss(name_space, prompt).known_tokens;
  }

  FakeDevice device;
  KvCache cache;
};

TEST_CASE("a prefix takes along what begins with it and nothing else") {
  for (const std::size_t length : {1u, 15u, 16u, 17u, 20u, 32u, 33u, 48u, 49u}) {
    CAPTURE(length);
    Setup setup;
    setup.run(ids(48));
    setup.run(ids(16) + ids(32, 500));
    setup.run(ids(48, 900));
    setup.run(ids(48), {}, "m");
    const std::size_t removed = setup.cache.invalidate_prefix("n", ids(length));
    const std::size_t left = (length - 1) / 16 * 16;  // up to the block that holds the last token
    CHECK(setup.known(ids(48)) == std::min<std::size_t>(left, 48));
    CHECK(setup.known(ids(16) + ids(32, 500)) == (length <= 16 ? 0 : 48));
    CHECK(setup.known(ids(48, 900)) == 48);
    CHECK(setup.known(ids(48), "m") == 48);
    CHECK(removed == (length <= 16 ? 5 : length <= 48 ? 3 - left / 16 : 0));
  }
}

TEST_CASE("a part of a block takes along all blocks that begin with it") {
  Setup setup;
  for (TokenId i = 0; i < 10; ++i) setup.run(ids(20) + ids(12, 100 * (i + 1)));
  setup.run(ids(19) + ids(13, 5000));
  CHECK(setup.cache.invalidate_prefix("n", ids(20)) == 10);
  CHECK(setup.known(ids(20) + ids(12, 100)) == 19);
  CHECK(setup.known(ids(19) + ids(13, 5000)) == 32);
  CHECK(setup.cache.invalidate_prefix("n", {}) == 2);
  CHECK(setup.cache.invalidate_prefix("n", {}) == 0);
  CHECK(setup.cache.invalidate_prefix("unknown", ids(5)) == 0);
}

TEST_CASE("a running sequence is stopped by an invalidation of its prefix, and others are not") {
  Setup setup;
  FakeSequence hit = setup.start(ids(40), 30);
  FakeSequence missed = setup.start(ids(30) + ids(10, 500), 30);
  FakeSequence late = setup.start(ids(10), 60);  // has not come that far yet
  for (FakeSequence* sequence : {&hit, &missed, &late}) sequence->compute();
  missed.commit();
  setup.cache.invalidate_prefix("n", ids(40));
  for (FakeSequence* sequence : {&hit, &missed}) {
    for (TokenId i = 0; i < 20; ++i) sequence->generate(i);
    sequence->compute();
    sequence->commit();
    CHECK(sequence->intact());
  }
  CHECK(hit.table().committed() == 0);
  CHECK(missed.table().committed() == 3);
  for (TokenId i = 10; i < 36; ++i) late.generate(i);
  late.compute();
  late.commit();
  CHECK(late.table().committed() == 2);  // up to here it does not begin with it
  for (TokenId i = 36; i < 60; ++i) late.generate(i);
  late.compute();
  late.commit();
  CHECK(late.table().committed() == 2);
  CHECK(setup.known(ids(60)) == 32);
  // Who starts afterwards is not concerned.
  setup.run(ids(60));
  CHECK(setup.known(ids(60)) == 48);
}

TEST_CASE("more invalidated prefixes than are kept stop all that runs") {
  Setup setup;
  FakeSequence running = setup.start(ids(40));
  running.compute();
  for (TokenId i = 0; i < 17; ++i) setup.cache.invalidate_prefix("n", ids(5, 1000 * (i + 1)));
  running.commit();
  CHECK(running.table().committed() == 0);
  running.drop();
  setup.run(ids(40));
  CHECK(setup.known(ids(40)) == 32);
}

TEST_CASE("a tag takes along what any request with it has used") {
  Setup setup;
  setup.run(ids(32) + ids(32, 100), {.tags = {"a"}});
  setup.run(ids(32) + ids(32, 200), {.tags = {"b"}});
  setup.run(ids(64, 300), {.tags = {"b", "c"}});
  setup.run(ids(64, 400));
  CHECK(setup.cache.invalidate_tag("unknown") == 0);
  CHECK(setup.cache.invalidate_tag("c") == 4);
  CHECK(setup.known(ids(64, 300)) == 0);
  CHECK(setup.known(ids(32) + ids(32, 100)) == 64);
  // The front is of both: it goes, and so does what lies behind it.
  CHECK(setup.cache.invalidate_tag("a") == 6);
  CHECK(setup.known(ids(32) + ids(32, 200)) == 0);
  CHECK(setup.known(ids(64, 400)) == 64);
  CHECK(setup.cache.invalidate_tag("a") == 0);
}

TEST_CASE("a session takes along what only it has used") {
  Setup setup;
  setup.run(ids(32));  // a static text, of no session
  setup.run(ids(32) + ids(32, 100), {.session = "a"});
  setup.run(ids(32) + ids(32, 200), {.session = "b"});
  setup.run(ids(32, 300) + ids(32, 400), {.session = "a"});
  setup.run(ids(32, 300) + ids(32, 500), {.session = "b"});
  CHECK(setup.cache.invalidate_session("unknown") == 0);
  CHECK(setup.cache.invalidate_session("a") == 4);
  CHECK(setup.known(ids(32) + ids(32, 100)) == 32);
  CHECK(setup.known(ids(32) + ids(32, 200)) == 64);
  CHECK(setup.known(ids(32, 300) + ids(32, 400)) == 32);
  CHECK(setup.known(ids(32, 300) + ids(32, 500)) == 64);
  CHECK(setup.cache.invalidate_session("a") == 0);
  // What only these two had goes with the last of them.
  CHECK(setup.cache.invalidate_session("b") == 6);
  CHECK(setup.known(ids(32, 300)) == 0);
  CHECK(setup.known(ids(33)) == 32);
}

TEST_CASE("owner, version and namespace take along theirs") {
  Setup setup;
  struct Case {
    const char* name_space;
    const char* salt;
    const char* version;
  };
  const std::vector<Case> all{
      {"1", "a", "x"}, {"2", "a", "y"}, {"3", "b", "x"}, {"4", "b", "y"}, {"5", "", ""}};
  for (const Case& one : all) {
    setup.run(ids(40), {.salt = one.salt, .version = one.version}, one.name_space);
  }
  const auto left = [&] {
    std::string names;
    for (const Case& one : all) {
      if (setup.known(ids(40), one.name_space) > 0) names += one.name_space;
    }
    return names;
  };
  CHECK(setup.cache.owner_blocks("a") == 4);
  CHECK(setup.cache.invalidate_version("a", "x") == 2);
  CHECK(left() == "2345");
  CHECK(setup.cache.invalidate_version("b", "z") == 0);
  CHECK(setup.cache.invalidate_owner("b") == 4);
  CHECK(left() == "25");
  CHECK(setup.cache.invalidate_name_space("2") == 2);
  CHECK(setup.cache.invalidate_name_space("2") == 0);
  CHECK(left() == "5");
  CHECK(setup.cache.invalidate_owner("") == 2);
  CHECK(left().empty());
  CHECK(setup.cache.owner_blocks("a") == 0);
  CHECK(setup.cache.stats().evictions == 0);
  CHECK(setup.cache.stats().blocks_in_use == 0);
}

TEST_CASE("each invalidation stops the running sequences that it concerns, and no others") {
  const int which = GENERATE(range(0, 7));
  CAPTURE(which);
  Setup setup;
  FakeSequence concerned =
      setup.start(ids(40), 20, {.salt = "a", .version = "1", .session = "s", .tags = {"t"}}, "na");
  FakeSequence other =
      setup.start(ids(40), 20, {.salt = "b", .version = "1", .session = "r", .tags = {"u"}}, "nb");
  concerned.compute(20);
  concerned.commit();
  other.compute(20);
  other.commit();
  const auto invalidate = [&]() -> std::size_t {
    switch (which) {
      case 0:
        return setup.cache.invalidate_owner("a");
      case 1:
        return setup.cache.invalidate_version("a", "1");
      case 2:
        return setup.cache.invalidate_name_space("na");
      case 3:
        return setup.cache.invalidate_session("s");
      case 4:
        return setup.cache.invalidate_tag("t");
      case 5:
        return setup.cache.invalidate_prefix("na", ids(1));
      default:
        return setup.cache.clear() - 1;
    }
  };
  CHECK(invalidate() == 1);
  for (FakeSequence* sequence : {&concerned, &other}) {
    sequence->compute();
    sequence->commit();
    CHECK(sequence->intact());
  }
  CHECK(setup.known(ids(40), "na") == 0);
  CHECK(setup.known(ids(40), "nb") == (which == 6 ? 0 : 32));
  concerned.drop();
  setup.cache.check_integrity();
  other.drop();
  CHECK(setup.cache.stats().blocks_in_use == 0);
  // And not those that start later.
  setup.run(ids(40), {.salt = "a", .version = "1", .session = "s", .tags = {"t"}}, "na");
  CHECK(setup.known(ids(40), "na") == 32);
}

TEST_CASE("a sequence whose front was invalidated by another one's tag indexes nothing behind it") {
  Setup setup;
  setup.run(ids(48), {.tags = {"t"}});
  FakeSequence running = setup.start(ids(60), 20);
  CHECK(running.reused() == 48);
  CHECK(setup.cache.invalidate_tag("t") == 3);
  running.compute();
  running.commit();
  CHECK(running.intact());
  CHECK(setup.known(ids(60)) == 0);
  // The same tokens are indexed anew by others, in other blocks.
  setup.run(ids(60));
  CHECK(setup.known(ids(60)) == 48);
  running.drop();
  CHECK(setup.known(ids(60)) == 48);
}

TEST_CASE("a sequence keeps its place in what is left of its path") {
  Setup setup(8);
  FakeSequence running = setup.start(ids(64));
  running.compute();
  running.commit();
  CHECK(setup.cache.invalidate_prefix("n", ids(33)) == 2);
  CHECK(setup.known(ids(64)) == 32);
  CHECK(setup.cache.facts(running.table()).blocks.size() == 2);
  const std::size_t in_use = setup.cache.stats().blocks_in_use;
  CHECK(in_use == 4);
  running.drop();
  CHECK(setup.known(ids(64)) == 32);
  CHECK(setup.cache.stats().blocks_in_use == 0);
  setup.run(ids(128, 1000));  // needs all blocks
  CHECK(setup.known(ids(64)) == 0);
}

TEST_CASE("churn of namespaces, sessions and tags leaves nothing behind") {
  Setup setup(16);
  for (int i = 0; i < 300; ++i) {
    const std::string name = std::to_string(i);
    setup.run(ids(40, i), {.salt = name, .session = name, .tags = {name}}, name);
    if (i % 3 == 0) setup.cache.invalidate_session(name);
    if (i % 3 == 1) setup.cache.invalidate_tag(name);
    if (i % 7 == 0) setup.cache.invalidate_owner(std::to_string(i - 1));
    setup.cache.check_integrity();
  }
  CHECK(setup.cache.stats().blocks_in_use == 0);
}

}  // namespace
}  // namespace incipit::test
