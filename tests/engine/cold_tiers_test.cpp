// SPDX-License-Identifier: Apache-2.0
// Promises 1 to 3 with cold tiers: what comes from a store gives the bits of the uncached run, and
// whatever is wrong with a store costs time only.
#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "incipit/store.h"
#include "kv/sealer.h"
#include "store/fake_store.h"
#include "store/store_wrapper.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using namespace incipit;
using namespace incipit::test;
using namespace std::chrono_literals;

namespace {

std::shared_ptr<PrefixCache> cache_on(std::shared_ptr<Store> store,
                                      PrefixCacheOptions options = {}) {
  options.tiers = {{.store = std::move(store)}};
  options.tier_patience = 10s;  // what a tier has is taken, however fast a tiny model is
  return std::make_shared<PrefixCache>(std::move(options));
}

std::shared_ptr<Store> folder(const TemporaryDirectory& directory) {
  DirectoryStoreOptions options;
  options.directory = directory.path() / "kv";
  return make_directory_store(options);
}

GenerateResult run(Engine& engine, std::span<const TokenId> ids, const CacheLabels& labels = {}) {
  GenerateParams params = whole_rows(engine, 3);
  params.cache = labels;
  return engine.generate_with_cache(ids, params);
}

std::string uncached(Engine& engine, std::span<const TokenId> ids) {
  return fingerprint(engine.generate(ids, whole_rows(engine, 3)));
}

// What a new process with this store takes of a prompt from it.
std::size_t loaded_anew(const TinyModelFile& file, std::shared_ptr<Store> store,
                        std::span<const TokenId> ids, const CacheLabels& labels = {},
                        PrefixCacheOptions options = {}) {
  Engine engine(file.options(), cache_on(std::move(store), std::move(options)));
  const GenerateResult result = run(engine, ids, labels);
  CHECK(fingerprint(result) == uncached(engine, ids));
  CHECK(result.loaded_tokens == result.reused_tokens);
  return result.loaded_tokens;
}

// Leaves a prompt in a store.
void leave(const TinyModelFile& file, std::shared_ptr<Store> store, std::span<const TokenId> ids,
           const CacheLabels& labels = {}, PrefixCacheOptions options = {}) {
  Engine engine(file.options(), cache_on(std::move(store), std::move(options)));
  run(engine, ids, labels);
}

std::size_t whole_blocks(std::size_t prompt) { return (prompt - 1) / 16 * 16; }

std::vector<std::byte> key_bytes(int fill) { return std::vector<std::byte>(32, std::byte(fill)); }

}  // namespace

TEST_CASE("a new engine finds in the folder what another has computed, with every KV type") {
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    const TinyModelFile file;
    EngineOptions options = file.options();
    options.kv_type = type;
    const TemporaryDirectory directory;
    for (const std::size_t n : {17u, 33u, 160u, 300u}) {
      const auto ids = random_ids(n, static_cast<std::uint32_t>(n));
      std::string expected;
      {
        Engine engine(options, cache_on(folder(directory)));
        expected = uncached(engine, ids);
        CHECK(fingerprint(run(engine, ids)) == expected);
      }
      Engine engine(options, cache_on(folder(directory)));
      const GenerateResult result = run(engine, ids);
      CAPTURE(n, static_cast<int>(type));
      CHECK(result.loaded_tokens == whole_blocks(n));
      CHECK(result.reused_tokens == whole_blocks(n));
      CHECK(fingerprint(result) == expected);
      CHECK(engine.cache().stats().tiers.front().tokens_reused == whole_blocks(n));
    }
  }
}

TEST_CASE("the longest stored front of a prompt is loaded, whatever follows it") {
  const TinyModelFile file;
  const auto store = make_memory_store(64 << 20);
  const auto ids = random_ids(400, 1);
  leave(file, store, ids);
  for (const std::size_t common : {16u, 31u, 48u, 100u, 256u, 399u}) {
    auto prompt = std::vector<TokenId>(ids.begin(), ids.begin() + static_cast<long>(common));
    for (const TokenId id : random_ids(60, 2)) prompt.push_back(id);
    prompt[common] = ids[common] == 10 ? 11 : 10;
    CAPTURE(common);
    CHECK(loaded_anew(file, store, prompt) >= common / 16 * 16);
  }
}

TEST_CASE(
    "the next turn loads the generated text too, and a longer text takes a short one's place") {
  const TinyModelFile file;
  const auto store = make_memory_store(64 << 20);
  auto ids = random_ids(40, 5);
  for (int turn = 0; turn < 4; ++turn) {
    Engine engine(file.options(), cache_on(store));
    const GenerateResult result = run(engine, ids);
    CHECK(fingerprint(result) == uncached(engine, ids));
    if (turn > 0) CHECK(result.loaded_tokens == whole_blocks(ids.size()));
    ids.insert(ids.end(), result.token_ids.begin(), result.token_ids.end() - 1);
    const auto more = random_ids(16 - ids.size() % 16 + 1, static_cast<std::uint32_t>(turn));
    ids.insert(ids.end(), more.begin(), more.end());
    run(engine, ids);
  }
}

TEST_CASE(
    "two engines of one cache share through the tier; a change of KV type or model does not") {
  const TinyModelFile file;
  const TinyModelFile other({.seed = 2});
  const auto cache = cache_on(make_memory_store(64 << 20));
  const auto ids = random_ids(100, 7);
  Engine first(file.options(), cache);
  run(first, ids);
  REQUIRE(cache->flush(10s));
  Engine second(file.options(), cache);
  CHECK(run(second, ids).loaded_tokens == 96);
  EngineOptions f32 = file.options();
  f32.kv_type = KvType::kF32;
  Engine third(f32, cache);
  CHECK(run(third, ids).reused_tokens == 0);
  Engine fourth(other.options(), cache);
  CHECK(run(fourth, ids).reused_tokens == 0);
}

TEST_CASE("the same salt and version share in a tier, other ones never") {
  const TinyModelFile file;
  const auto store = make_memory_store(64 << 20);
  const auto ids = random_ids(100, 8);
  leave(file, store, ids, {.salt = "a", .version = "1"});
  CHECK(loaded_anew(file, store, ids, {.salt = "a", .version = "1"}) == 96);
  CHECK(loaded_anew(file, store, ids, {.salt = "b", .version = "1"}) == 0);
  CHECK(loaded_anew(file, store, ids, {.salt = "a", .version = "2"}) == 0);
  CHECK(loaded_anew(file, store, ids) == 0);
}

TEST_CASE("a store that damages, loses, swaps or refuses values never makes an answer wrong") {
  const TinyModelFile file;
  const auto ids = random_ids(300, 9);
  for (const StoreFaults& faults :
       {StoreFaults{.corrupt_every = 1}, StoreFaults{.truncate_every = 2},
        StoreFaults{.extend_every = 1}, StoreFaults{.swap_every = 2}, StoreFaults{.drop_every = 3},
        StoreFaults{.fail_every = 4}, StoreFaults{.throw_every = 5}, StoreFaults{.lose_every = 2},
        StoreFaults{.down = true}}) {
    const auto store = std::make_shared<FaultyStore>();
    leave(file, store, ids);
    store->set(faults);
    loaded_anew(file, store, ids);  // checks the bits
    store->set({});
    loaded_anew(file, store, ids);
  }
}

TEST_CASE("every file of the folder damaged: all is computed, and stored again") {
  const TinyModelFile file;
  const TemporaryDirectory directory;
  const auto ids = random_ids(200, 10);
  leave(file, folder(directory), ids);
  CHECK(loaded_anew(file, folder(directory), ids) == 192);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory.path())) {
    if (!entry.is_regular_file() || entry.file_size() == 0) continue;
    std::fstream damaged(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(static_cast<long>(entry.file_size() / 2));
    damaged.put('\x5a').put('\x5b').put('\x5c');
  }
  CHECK(loaded_anew(file, folder(directory), ids) == 0);
  CHECK(loaded_anew(file, folder(directory), ids) == 192);
}

TEST_CASE("a store that hangs, even past its deadline, does not hold a request up for long") {
  const TinyModelFile file;
  const auto store = std::make_shared<FaultyStore>();
  const auto ids = random_ids(300, 11);
  leave(file, store, ids);
  const auto slow = [&](StoreFaults faults) {
    store->set(faults);
    PrefixCacheOptions options;
    options.tiers = {{.store = store, .deadline = 20ms, .write_deadline = 20ms}};
    Engine engine(file.options(), std::make_shared<PrefixCache>(options));
    const auto begin = std::chrono::steady_clock::now();
    CHECK(fingerprint(run(engine, ids)) == uncached(engine, ids));
    CHECK(std::chrono::steady_clock::now() - begin < 20s);
  };
  slow({.hang = true});
  slow({.ignore_deadline = true, .delay = 100ms});
  slow({.bytes_per_second = 200'000});
}

namespace {

// Gives of the extents only the last one, which is short.
class LastExtent final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    const StoreStatus status = StoreWrapper::get(key, deadline, value);
    constexpr std::size_t kBytes = 200'000;  // more than 448 tokens take, less than 1,024
    return value.bytes().size() < kBytes ? status : StoreStatus::kMiss;
  }
};

}  // namespace

TEST_CASE("a tail that arrives is used where compute meets it, and a gap is computed") {
  const TinyModelFile file({.context = 4096});
  const auto store = make_memory_store(64 << 20);
  const auto ids = random_ids(2500, 16);  // three extents of at most 1,024 tokens
  leave(file, store, ids);
  CHECK(loaded_anew(file, store, ids) == whole_blocks(2500));
  const std::size_t loaded = loaded_anew(file, std::make_shared<LastExtent>(store), ids);
  CHECK(loaded == whole_blocks(2500) - 2048);
}

TEST_CASE("a text goes on while a search of the tiers is still open") {
  const TinyModelFile file;
  const auto store = std::make_shared<FaultyStore>();
  PrefixCacheOptions options;
  options.tiers = {{.store = store, .deadline = 20s}};
  Engine engine(file.options(), std::make_shared<PrefixCache>(options));
  run(engine, random_ids(40, 1));  // its labels are known from now on
  store->set({.delay = 3s});
  GenerateParams params = whole_rows(engine, 8);
  const auto begin = std::chrono::steady_clock::now();
  const auto result = engine.generate_with_cache(random_ids(40, 2), params);
  CHECK(result.token_ids.size() == 8);
  CHECK(std::chrono::steady_clock::now() - begin < 2900ms);
  store->set({});
}

TEST_CASE("with a key only who has it finds anything, and the store holds no token ids") {
  const TinyModelFile file;
  const auto store = std::make_shared<FaultyStore>();
  const auto ids = random_ids(100, 12);
  const auto with_key = [](int fill, std::uint32_t epoch = 0) {
    PrefixCacheOptions options;
    options.encryption_key = [fill](std::uint32_t) { return key_bytes(fill); };
    options.key_epoch = epoch;
    return options;
  };
  const auto holds_ids = [&] {
    const auto needle = std::as_bytes(std::span(ids).subspan(16, 8));
    return std::ranges::any_of(store->values(), [&](const auto& value) {
      return !std::ranges::search(value.second, needle).empty();
    });
  };
  leave(file, store, ids, {}, with_key(1));
  CHECK_FALSE(holds_ids());
  CHECK(loaded_anew(file, store, ids, {}, with_key(1)) == 96);
  CHECK(loaded_anew(file, store, ids, {}, with_key(2)) == 0);
  CHECK(loaded_anew(file, store, ids, {}, with_key(1, 1)) == 0);
  CHECK(loaded_anew(file, store, ids) == 0);
  CHECK(holds_ids());  // the last one had no key
}

TEST_CASE("bad options of a cache are errors that say so") {
  CHECK_THROWS_AS(cache_on(nullptr), Error);
  PrefixCacheOptions options;
  options.encryption_key = [](std::uint32_t) { return std::vector<std::byte>(16); };
  CHECK_THROWS_AS(cache_on(make_memory_store(1 << 20), options), Error);
}

TEST_CASE("what is forgotten is found neither here nor by another process nor after a restart") {
  const TinyModelFile file;
  const auto ids = random_ids(100, 13);
  const CacheLabels labels{
      .salt = "tenant", .version = "7", .session = "s", .tags = {"document", "other"}};
  const std::vector<std::function<Invalidation(Engine&)>> ways = {
      [](Engine& engine) { return engine.cache().clear(); },
      [](Engine& engine) { return engine.cache().invalidate_tag("document"); },
      [](Engine& engine) { return engine.cache().invalidate_session("s"); },
      [](Engine& engine) { return engine.cache().invalidate_salt("tenant"); },
      [](Engine& engine) { return engine.cache().invalidate_version("tenant", "7"); },
      [&](Engine& engine) { return engine.invalidate_namespace(labels); },
  };
  for (std::size_t way = 0; way < ways.size(); ++way) {
    CAPTURE(way);
    const auto store = make_memory_store(64 << 20);
    Engine engine(file.options(), cache_on(store));
    Engine other(file.options(), cache_on(store));  // as if in another process
    run(engine, ids, labels);
    REQUIRE(engine.cache().flush(10s));
    CHECK(run(other, ids, labels).reused_tokens == 96);
    CHECK(ways[way](engine).complete());
    CHECK(run(engine, ids, labels).reused_tokens == 0);
    std::this_thread::sleep_for(1010ms);
    // The first engine has computed and stored it again, which is found; what was there is not.
    const auto reused = run(other, ids, labels);
    CHECK(reused.reused_tokens == reused.loaded_tokens);
  }
  // Nothing that other labels cover goes along.
  const auto store = make_memory_store(64 << 20);
  Engine engine(file.options(), cache_on(store));
  run(engine, ids, labels);
  CHECK(engine.cache().invalidate_tag("tenant").complete());
  CHECK(engine.cache().invalidate_salt("document").complete());
  CHECK(engine.cache().invalidate_version("tenant", "8").complete());
  CHECK(run(engine, ids, labels).reused_tokens >= 96);
}

TEST_CASE("a tier that cannot be told of an invalidation is named, and told before it is used") {
  const TinyModelFile file;
  const auto store = std::make_shared<FaultyStore>();
  const auto ids = random_ids(100, 14);
  Engine engine(file.options(), cache_on(store));
  run(engine, ids, {.tags = {"t"}});
  REQUIRE(engine.cache().flush(10s));
  store->set({.down = true});
  const Invalidation told = engine.cache().invalidate_tag("t");
  CHECK_FALSE(told.complete());
  CHECK(told.unreached == std::vector<std::string>{"faulty"});
  CHECK(run(engine, ids, {.tags = {"t"}}).reused_tokens == 0);
  store->set({});
  engine.cache().flush(10s);
  // The breaker may be open for a while; whatever it does, nothing old comes back.
  for (int i = 0; i < 20; ++i) {
    engine.cache().clear();
    const GenerateResult result = run(engine, ids, {.tags = {"t"}});
    CHECK(result.loaded_tokens == 0);
    if (engine.cache().flush(10s) && engine.cache().invalidate_tag("t").complete()) break;
    std::this_thread::sleep_for(50ms);
  }
  CHECK(engine.cache().invalidate_tag("t").complete());
  CHECK(loaded_anew(file, store, ids, {.tags = {"t"}}) == 0);
}

namespace {

// A store whose owner changes KV and seals it again, which a key would prevent.
class Forger final : public StoreWrapper {
 public:
  using StoreWrapper::StoreWrapper;
  std::atomic<bool> forges = true;

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override {
    const StoreStatus status = StoreWrapper::get(key, deadline, value);
    if (status != StoreStatus::kOk || !forges) return status;
    if (const auto body = sealer_.open(value, kv::RecordKind::kExtent, key)) {
      for (std::byte& byte : body->last(2048)) byte ^= std::byte{1};
      sealer_.seal(value, kv::RecordKind::kExtent, key, 0s);
    }
    return status;
  }

 private:
  const kv::Sealer sealer_{{}};
};

}  // namespace

TEST_CASE("validation finds wrong KV that proves itself, and empties the namespace") {
  const TinyModelFile file;
  const auto store = make_memory_store(64 << 20);
  const auto ids = random_ids(100, 15);
  std::string expected;
  {
    Engine engine(file.options(), cache_on(store));
    expected = uncached(engine, ids);
    run(engine, ids);
  }
  const auto forger = std::make_shared<Forger>(store);
  {
    Engine engine(file.options(), cache_on(forger));  // the test can tell the difference
    CHECK(fingerprint(run(engine, ids)) != expected);
  }
  PrefixCacheOptions options;
  options.validate_every = 1;
  Engine engine(file.options(), cache_on(forger, options));
  CHECK(fingerprint(run(engine, ids)) == expected);
  CHECK(engine.cache().stats().validations == 1);
  CHECK(engine.cache().stats().mismatches == 1);
  forger->forges = false;
  CHECK(fingerprint(run(engine, ids)) == expected);
  CHECK(engine.cache().stats().validations == 2);
  CHECK(engine.cache().stats().mismatches == 1);
}

TEST_CASE("requests of many threads over a small pool and a tier give the uncached bits") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  Engine reference(options);
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> expected;
  for (std::uint32_t i = 0; i < 12; ++i) {
    auto ids = random_ids(40 + 10 * (i % 3), 100 + i % 3);
    const auto rest = random_ids(20 + i, i);
    ids.insert(ids.end(), rest.begin(), rest.end());
    expected.push_back(uncached(reference, ids));
    prompts.push_back(std::move(ids));
  }
  options.kv_pool_bytes = 24 * reference.model().pool_bytes_per_block;
  for (const WritePolicy policy :
       {WritePolicy::kThrough, WritePolicy::kSecondHit, WritePolicy::kOnEviction}) {
    const auto store = std::make_shared<FaultyStore>(StoreFaults{.delay = 50us, .fail_every = 50});
    PrefixCacheOptions cache_options;
    cache_options.tiers = {{.store = store, .write = policy}};
    Engine engine(options, std::make_shared<PrefixCache>(cache_options));
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 2 * prompts.size(); ++i) {
          const std::size_t at = (i * (t + 1) + t) % prompts.size();
          if (fingerprint(run(engine, prompts[at])) != expected[at]) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK((wrong == 0));
    CHECK(engine.cache().flush(20s));
    CHECK(engine.cache().stats().blocks_in_use == 0);
  }
}
