// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// explain_miss(), events and snapshots.

namespace incipit::test {
namespace {

using kv::EventLog;
using kv::Gone;
using kv::KvCache;
using kv::MissReport;
using kv::Time;

void run(FakeDevice& device, KvCache& cache, const Tokens& prompt, const CacheLabels& labels = {},
         const std::string& name_space = "n") {
  FakeSequence sequence(device, cache, name_space);
  REQUIRE(sequence.start(prompt, 0, labels));
  sequence.compute();
  sequence.commit();
}

TEST_CASE("a miss is explained by the first token that differs and the nearest known block") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 16});
  run(device, cache, ids(48));
  run(device, cache, ids(16) + ids(20, 500));
  MissReport report = cache.explain_miss("n", ids(21) + ids(20, 700));
  CHECK(report.known_tokens == 21);
  CHECK_FALSE(report.whole);
  CHECK(report.why == Gone::kNever);
  CHECK(report.sibling == ids(16, 16));
  report = cache.explain_miss("n", ids(16) + ids(16, 900));
  CHECK(report.known_tokens == 16);
  CHECK(report.sibling.empty());
  report = cache.explain_miss("n", ids(48) + ids(5, 100));  // what fills no block is not missing
  CHECK(report.known_tokens == 48);
  CHECK(report.whole);
  CHECK(cache.explain_miss("n", ids(40)).whole);
  CHECK(cache.explain_miss("n", ids(40)).known_tokens == 40);
  CHECK(cache.explain_miss("n", {}).whole);
  CHECK(cache.stats().lookups == 2);  // explaining is no use
}

TEST_CASE("a miss is explained by why the block went") {
  Time now(std::chrono::seconds(100));
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8, .clock = [&] { return now; }});
  const auto why = [&](const Tokens& prompt) { return cache.explain_miss("n", prompt).why; };
  run(device, cache, ids(64));
  run(device, cache, ids(80, 500), {.time_to_live = std::chrono::seconds(5)});
  CHECK(why(ids(64)) == Gone::kEvicted);
  CHECK(cache.explain_miss("n", ids(64)).known_tokens == 48);
  now += std::chrono::seconds(6);
  run(device, cache, ids(3));
  CHECK(why(ids(64, 500)) == Gone::kExpired);
  cache.invalidate_prefix("n", ids(33));
  CHECK(why(ids(64)) == Gone::kInvalidated);
  run(device, cache, ids(64));
  CHECK(cache.explain_miss("n", ids(64)).whole);
  cache.clear();
  CHECK(why(ids(64)) == Gone::kInvalidated);
  CHECK(why(ids(64, 77)) == Gone::kNever);
}

TEST_CASE("a miss is explained by another namespace that knows the text") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  run(device, cache, ids(40), {.salt = "s", .version = "2"}, "other");
  MissReport report = cache.explain_miss("n", ids(40));
  CHECK(report.known_tokens == 0);
  CHECK(report.elsewhere.name_space == "other");
  CHECK(report.elsewhere.salt == "s");
  CHECK(report.elsewhere.version == "2");
  CHECK(cache.explain_miss("n", ids(40, 1)).elsewhere.name_space.empty());
  run(device, cache, ids(16));
  CHECK(cache.explain_miss("n", ids(40)).elsewhere.name_space.empty());
}

/// Who follows a cache: identity to parent and tokens.
class Follower {
 public:
  void follow(const KvCache& cache, std::size_t limit) {
    for (;;) {
      EventLog::Batch batch = cache.events(next_, limit);
      if (batch.lost) {
        ++snapshots;
        known_.clear();
        batch = cache.snapshot();
        apply(batch);
        return;
      }
      if (batch.events.empty()) return;
      apply(batch);
    }
  }
  bool equals(const KvCache& cache) const {
    Follower other;
    other.apply(cache.snapshot());
    return other.known_ == known_ && other.next_ == next_;
  }
  std::size_t size() const { return known_.size(); }
  int snapshots = 0;
  int mistakes = 0;

 private:
  void apply(const EventLog::Batch& batch) {
    for (const CacheEvent& event : batch.events) {
      switch (event.kind) {
        case CacheEvent::Kind::kStored:
          if (!known_.try_emplace(event.identity, event.parent, event.tokens).second) ++mistakes;
          break;
        case CacheEvent::Kind::kRemoved:
          if (known_.erase(event.identity) != 1) ++mistakes;
          break;
        case CacheEvent::Kind::kCleared:
          known_.clear();
          break;
      }
    }
    next_ = batch.next;
  }

  std::map<std::uint64_t, std::pair<std::uint64_t, std::array<TokenId, 16>>> known_ = {};
  std::uint64_t next_ = 0;
};

TEST_CASE("events tell what is stored, removed and cleared") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 3, .event_buffer = 100});
  run(device, cache, ids(40));
  EventLog::Batch batch = cache.events(0, 100);
  REQUIRE(batch.events.size() == 2);
  CHECK(batch.next == 2);
  CHECK(batch.events[0].kind == CacheEvent::Kind::kStored);
  CHECK(batch.events[1].sequence == 1);
  CHECK(batch.events[1].parent == batch.events[0].identity);
  CHECK(batch.events[1].tokens[15] == 31);
  const std::uint64_t second = batch.events[1].identity;
  run(device, cache, ids(40));  // nothing new
  CHECK(cache.events(2, 100).events.empty());
  run(device, cache, ids(32, 500));
  batch = cache.events(2, 1);
  REQUIRE(batch.events.size() == 1);
  CHECK(batch.events[0].kind == CacheEvent::Kind::kRemoved);
  CHECK(batch.events[0].identity == second);
  cache.clear();
  batch = cache.events(batch.next, 100);
  CHECK(batch.events.back().kind == CacheEvent::Kind::kCleared);
  CHECK(cache.snapshot().events.empty());
  CHECK(cache.snapshot().next == batch.next);
}

// vLLM #55092: an event of removal while a duplicate is still there.
TEST_CASE("a duplicate that is merged gives no event, and the block that stays is not removed") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8, .event_buffer = 100});
  FakeSequence twin(device, cache, "n");
  REQUIRE(twin.start(ids(32)));
  run(device, cache, ids(32));
  twin.compute();
  twin.commit();
  CHECK(cache.events(0, 100).events.size() == 2);
  twin.drop();
  CHECK(cache.events(0, 100).events.size() == 2);
}

// aibrix #2287, llm-d #593: a consumer that ignores a clear.
TEST_CASE("who follows the events knows what the cache knows, after any history") {
  const std::size_t buffer = GENERATE(0u, 3u, 16u, 1000u);
  CAPTURE(buffer);
  Time now(std::chrono::seconds(100));
  FakeDevice device;
  KvCache cache(device, tiny_layout(),
                {.blocks = 12, .owner_quota_blocks = 9, .event_buffer = buffer, .clock = [&] {
                   return now;
                 }});
  std::mt19937_64 random(buffer);
  Follower follower;
  for (int i = 0; i < 600; ++i) {
    CacheLabels labels{.salt = random() % 2 == 0 ? "a" : "b", .tags = {"t"}};
    labels.tags[0] += static_cast<char>('0' + random() % 5);
    labels.session = labels.tags[0];
    labels.time_to_live = std::chrono::seconds(random() % 40);
    const std::string name_space = labels.salt;
    run(device, cache, ids(random() % 40) + ids(16 + random() % 30, 100), labels, name_space);
    now += std::chrono::seconds(1);
    switch (random() % 30) {
      case 0:
        cache.clear();
        break;
      case 1:
        cache.invalidate_tag("t2");
        break;
      case 2:
        cache.invalidate_owner("a");
        break;
      case 3:
        cache.invalidate_prefix("b", ids(1 + random() % 20));
        break;
      case 4:
        cache.invalidate_session("t3");
        break;
      default:
        break;
    }
    if (random() % 4 != 0) continue;
    follower.follow(cache, 1 + random() % 10);
    REQUIRE(follower.equals(cache));
  }
  CHECK(follower.mistakes == 0);
  CHECK((follower.snapshots == 0) == (buffer == 1000));
}

TEST_CASE("who asks for what has not happened yet is told to begin anew") {
  EventLog log(4);
  CHECK_FALSE(log.read(0, 10).lost);
  CHECK(log.read(1, 10).lost);
  for (int i = 0; i < 6; ++i) log.push({});
  CHECK(log.read(1, 10).lost);
  CHECK(log.read(2, 10).events.size() == 4);
  CHECK(log.read(2, 10).events[0].sequence == 2);
  CHECK(log.read(2, 0).next == 2);
  CHECK(log.read(6, 10).events.empty());
  CHECK_FALSE(log.read(6, 10).lost);
}

}  // namespace
}  // namespace incipit::test
