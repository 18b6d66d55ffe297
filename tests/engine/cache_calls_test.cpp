// SPDX-License-Identifier: Apache-2.0
// What an Engine does for its cache.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "incipit/store.h"
#include "store/fake_store.h"
#include "store/store_wrapper.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace incipit;
using namespace incipit::test;
using namespace std::chrono_literals;

namespace {

GenerateResult run(Engine& engine, std::span<const TokenId> ids) {
  return engine.generate_with_cache(ids, whole_rows(engine, 3));
}

}  // namespace

TEST_CASE("validate() compares a text's reused KV with a direct forward pass") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::string text = "a static text that is long enough to fill one block of tokens or two";
  CHECK(engine.validate(text).reused_tokens == 0);
  const CacheValidation good = engine.validate(text);
  CHECK(good.reused_tokens > 0);
  CHECK(good.tokens == engine.tokenize(text).size());
  CHECK(good.equal);
  CHECK(engine.cache().stats().validations == 1);
  CHECK(engine.cache().stats().mismatches == 0);
  CHECK_THROWS_AS(engine.validate(""), Error);
}

TEST_CASE("explain_miss() says how far a prompt is known, and why not further") {
  const TinyModelFile file;
  PrefixCacheOptions options;
  options.tiers = {{.store = make_memory_store(64 << 20)}};
  Engine engine(file.options(), std::make_shared<PrefixCache>(options));
  const std::string text =
      "one two three four five six seven eight nine ten eleven twelve thirteen";
  const auto reason = [&](const std::string& prompt, const CacheLabels& labels = {}) {
    return engine.explain_miss(prompt, labels).reason;
  };
  CHECK(reason(text) == MissReason::kNeverStored);
  CHECK(engine.explain_miss(text).missing_token == engine.tokenize(text).front());
  engine.prefetch(text, {.salt = "a"});
  CHECK(reason(text, {.salt = "a"}) == MissReason::kNothingMissing);
  CHECK(reason(text) == MissReason::kOtherSalt);
  CHECK(reason(text, {.salt = "a", .version = "2"}) == MissReason::kOtherVersion);
  CHECK(engine.invalidate_prefix(text, {.salt = "a"}).complete());
  CHECK(reason(text, {.salt = "a"}) == MissReason::kInvalidated);
  engine.prefetch(text);
  const auto known = engine.explain_miss(text + " and then something else that nobody asked");
  CHECK(known.reason == MissReason::kNeverStored);
  CHECK(known.known_tokens > 0);
  CHECK(known.prompt_tokens > known.known_tokens);
  CHECK_FALSE(known.missing_text.empty());
  REQUIRE(engine.cache().flush(10s));
  CHECK(engine.explain_miss(text).stored_tokens > 0);
  CHECK(engine.explain_miss(text).stored_in == "memory");
  CHECK(engine.explain_miss("").reason == MissReason::kNothingMissing);
}

TEST_CASE("who follows the events knows what a snapshot says") {
  const TinyModelFile file;
  PrefixCacheOptions options;
  options.event_buffer = 1000;
  EngineOptions small = file.options();
  small.kv_pool_bytes = 20 * Engine(small).model().pool_bytes_per_block;
  Engine engine(small, std::make_shared<PrefixCache>(options));
  std::set<std::uint64_t> known;
  CacheEvents seen;
  for (std::uint32_t i = 0; i < 8; ++i) {
    run(engine, random_ids(100 + 20 * (i % 3), i % 5));
    if (i == 5) engine.cache().clear();
    seen = engine.cache_events(seen.next);
    CHECK_FALSE(seen.lost);
    for (const CacheEvent& event : seen.events) {
      if (event.kind == CacheEvent::Kind::kStored) known.insert(event.identity);
      if (event.kind == CacheEvent::Kind::kRemoved) CHECK(known.erase(event.identity) == 1);
      if (event.kind == CacheEvent::Kind::kCleared) known.clear();
    }
    const CacheEvents snapshot = engine.cache_snapshot();
    CHECK(snapshot.next == seen.next);
    std::set<std::uint64_t> there;
    for (const CacheEvent& event : snapshot.events) there.insert(event.identity);
    CHECK(there == known);
  }
  CHECK(engine.cache_events(0, 1).events.size() == 1);
  CHECK(Engine(file.options()).cache_events(0).events.empty());
}

TEST_CASE("a saved cache is loaded by a new engine, and gives the same bits") {
  const TinyModelFile file;
  const TemporaryDirectory directory;
  const auto path = directory.path() / "saved";
  const auto ids = random_ids(200, 17);
  std::string expected;
  {
    Engine engine(file.options());
    expected = fingerprint(run(engine, ids));
    CHECK(engine.cache().save(path) == 192);
  }
  Engine engine(file.options());
  CHECK(engine.cache().load(path) == 192);
  const GenerateResult result = run(engine, ids);
  CHECK(result.reused_tokens == 192);
  CHECK(fingerprint(result) == expected);
  Engine other(TinyModelFile({.seed = 3}).options());
  CHECK(other.cache().load(path) == 0);
}

TEST_CASE("a cache can be saved beside requests that fill the pool, and pinned texts are in it") {
  const TinyModelFile file;
  const TemporaryDirectory directory;
  EngineOptions options = file.options();
  options.kv_pool_bytes = 20 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  const std::string text = "a static text that is long enough to fill one block of tokens or two";
  engine.prefetch(text);
  REQUIRE(engine.pin(text, 1000s) > 0);
  std::atomic<bool> done = false;
  std::size_t least = static_cast<std::size_t>(-1);
  std::thread saver([&] {
    while (!done) least = std::min(least, engine.cache().save(directory.path() / "saved"));
  });
  for (std::uint32_t i = 0; i < 30; ++i) run(engine, random_ids(200, i));
  done = true;
  saver.join();
  CHECK(least >= 16);
}

TEST_CASE("validation ends with its request, and asks for no room that it does not have") {
  const TinyModelFile file;
  EngineOptions small = file.options();
  small.kv_pool_bytes = 4 * Engine(small).model().pool_bytes_per_block;
  PrefixCacheOptions options;
  options.validate_every = 1;
  Engine engine(small, std::make_shared<PrefixCache>(options));
  const auto ids = random_ids(64, 1);
  CHECK(engine.generate_with_cache(ids, {.max_tokens = 0}).token_ids.empty());
  CHECK(engine.generate_with_cache(ids, {.max_tokens = 0}).token_ids.empty());
  std::stop_source stopped;
  stopped.request_stop();
  GenerateParams params;
  params.max_tokens = 1;
  params.stop = stopped.get_token();
  CHECK(engine.generate_with_cache(random_ids(40, 2), params).finish == FinishReason::kStopped);
}

TEST_CASE("a pinned text outlives what is used later") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.kv_pool_bytes = 20 * Engine(options).model().pool_bytes_per_block;
  const std::string text = "a static text that is long enough to fill one block of tokens or two";
  for (const bool pinned : {false, true}) {
    Engine engine(options);
    engine.prefetch(text);
    const std::size_t known = engine.explain_miss(text).known_tokens;
    REQUIRE(known >= 16);
    if (pinned) CHECK(engine.pin(text, 1000s) > 0);
    CHECK(engine.pin("what nobody has computed", 1000s) == 0);
    for (std::uint32_t i = 0; i < 10; ++i) run(engine, random_ids(150, i));
    CHECK(engine.explain_miss(text).known_tokens == (pinned ? known / 16 * 16 : 0));
  }
}

namespace {

// Another store, whose writes wait while its gate is shut. No mutex: a test that held one while it
// calls the engine would turn the order of locks around.
class GatedStore final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  std::atomic<bool> is_shut = false;
  std::atomic<bool> a_write_waits = false;

  StoreStatus put(const StoreKey& key, std::span<const std::byte> value, std::chrono::seconds life,
                  Deadline deadline) override {
    a_write_waits = true;
    is_shut.wait(true);
    return StoreWrapper::put(key, value, life, deadline);
  }
};

template <class Condition>
bool comes_true(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

// Whether an engine has stopped making tokens.
bool stands(const Engine& engine) {
  const std::uint64_t steps = engine.stats().steps;
  std::this_thread::sleep_for(30ms);
  return engine.stats().steps == steps;
}

}  // namespace

TEST_CASE("who waits for blocks that a tier gives back gets them while a reader blocks") {
  const TinyModelFile file;
  const auto store = std::make_shared<GatedStore>(make_memory_store(64 << 20));
  PrefixCacheOptions cache_options;
  cache_options.tiers = {{.store = store, .write_deadline = 1000s}};
  EngineOptions options = file.options();
  options.kv_pool_bytes = 20 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options, std::make_shared<PrefixCache>(cache_options));
  run(engine, random_ids(20, 1));  // makes the epochs
  REQUIRE(engine.cache().flush(10s));

  store->is_shut = true;
  store->a_write_waits = false;
  run(engine, random_ids(110, 2));  // whose blocks the writer holds now
  REQUIRE(comes_true([&] { return store->a_write_waits.load(); }));
  std::atomic<bool> reader_waits = true, reads_begun = false, waiter_done = false;
  std::thread reader([&] {
    GenerateParams params{.max_tokens = 280, .ignore_eos = true};
    params.on_text = [&](std::string_view) {
      reads_begun = true;
      reader_waits.wait(true);
      return true;
    };
    engine.generate(random_ids(20, 3), params);
  });
  const bool blocked = comes_true([&] { return reads_begun && stands(engine); });
  std::thread waiter([&] {
    run(engine, random_ids(100, 4));
    waiter_done = true;
  });
  std::this_thread::sleep_for(20ms);  // it has asked, and nobody will tell it to ask again
  store->is_shut = false;
  store->is_shut.notify_all();
  const bool came = comes_true([&] { return waiter_done.load(); });
  reader_waits = false;
  reader_waits.notify_all();
  reader.join();
  waiter.join();
  CHECK(blocked);
  CHECK(came);
}

TEST_CASE("a request that ends while it loads leaves nothing wrong behind") {
  const TinyModelFile file;
  const auto ids = random_ids(400, 20);
  const auto store = std::make_shared<FaultyStore>();
  PrefixCacheOptions options;
  options.tiers = {{.store = store, .deadline = 20s}};
  {
    Engine engine(file.options(), std::make_shared<PrefixCache>(options));
    run(engine, ids);
  }
  options.tier_patience = 10s;
  Engine engine(file.options(), std::make_shared<PrefixCache>(options));
  const std::string expected = fingerprint(engine.generate(ids, whole_rows(engine, 3)));
  run(engine, random_ids(20, 21));  // makes the epochs
  store->set({.delay = 100ms});
  GenerateParams params = whole_rows(engine, 3);
  params.on_prefill = [](std::size_t, std::size_t) {
    throw std::runtime_error("the reader's own");
  };
  CHECK_THROWS_AS(engine.generate_with_cache(ids, params), std::runtime_error);
  store->set({});
  CHECK(fingerprint(run(engine, ids)) == expected);
  REQUIRE(engine.cache().flush(10s));
  CHECK(engine.cache().stats().blocks_in_use == 0);
}
