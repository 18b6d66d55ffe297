// SPDX-License-Identifier: Apache-2.0
#include "kv/cache_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "fuzz/corpus.h"
#include "fuzz/mutations.h"
#include "kv/fake_sequence.h"
#include "kv/prefix_cache_impl.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace incipit::test {
namespace {

using kv::KvCache;

// A pool of a model whose namespaces begin with `model`, registered with a cache of its own.
struct Pool {
  explicit Pool(std::string model = "m", std::size_t blocks = 64, PrefixCacheOptions options = {})
      : cache(device, tiny_layout(), {.blocks = blocks}),
        registry(std::make_shared<kv::CacheRegistry>(std::move(options))),
        registration(registry->add(cache, device, std::move(model))) {}

  // Computes what the pool does not have, checks the KV that it has. Returns how many tokens it
  // had.
  std::size_t run(const Tokens& prompt, const CacheLabels& labels = {}) {
    FakeSequence sequence(device, cache, kv::name_space_of("m", labels.salt, labels.version));
    if (!sequence.start(prompt, 0, labels)) return 0;
    const std::size_t known = sequence.reused();
    sequence.compute();
    sequence.commit();
    CHECK(sequence.intact());
    return known;
  }

  FakeDevice device;
  KvCache cache;
  std::shared_ptr<kv::CacheRegistry> registry;
  kv::CacheRegistry::Registration registration;
};

struct File {
  TemporaryDirectory directory;
  std::filesystem::path path = directory.path() / "cache";
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& content) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }
};

PrefixCacheOptions with_key(int fill) {
  PrefixCacheOptions options;
  options.encryption_key = [fill](std::uint32_t) {
    return std::vector<std::byte>(32, static_cast<std::byte>(fill));
  };
  return options;
}

TEST_CASE("a pool is what another one was when it was saved, branches and all") {
  const File file;
  const Tokens common = ids(100);
  Pool from;
  from.run(common + ids(60, 1000));
  from.run(common + ids(40, 2000));
  from.run(ids(50, 3000), {.salt = "b"});
  const std::size_t cached = from.cache.stats().blocks_cached;
  CHECK(from.registry->save(file.path) == cached * 16);

  Pool to;
  CHECK(to.registry->load(file.path) == cached * 16);
  CHECK(to.cache.stats().lookups == 0);
  to.cache.check_integrity();
  CHECK(to.cache.stats().blocks_cached == cached);
  CHECK(to.run(common + ids(60, 1000)) == 159);
  CHECK(to.run(common + ids(40, 2000)) == 128);
  CHECK(to.run(ids(50, 3000), {.salt = "b"}) == 48);
  CHECK(to.run(ids(50, 3000)) == 0);
  CHECK(to.registry->load(file.path) == 0);  // all is known
}

TEST_CASE("a file grows with what is saved, however long the prefixes are") {
  const auto bytes_of = [](std::size_t blocks) {
    const File file;
    Pool pool("m", blocks + 2);
    pool.run(ids(blocks * 16));
    CHECK(pool.registry->save(file.path) == blocks * 16);
    Pool to("m", blocks + 2);
    CHECK(to.registry->load(file.path) == blocks * 16);
    CHECK(to.run(ids(blocks * 16 + 1)) == blocks * 16);
    return file.bytes().size();
  };
  CHECK(bytes_of(2000) < 11 * bytes_of(200));
}

TEST_CASE("what suits no engine, or has no room, is left out") {
  const File file;
  Pool from;
  from.run(ids(320));
  from.registry->save(file.path);
  Pool other("another");
  CHECK(other.registry->load(file.path) == 0);
  Pool small("m", 8);
  CHECK(small.registry->load(file.path) <= 8 * 16);
  small.cache.check_integrity();
  Pool full;
  CHECK(full.registry->load(file.path) == 320);
}

TEST_CASE("runs that end behind the largest pool are not put together") {
  const File file;
  Pool from("m", 2000);
  from.run(ids(16'000));
  from.registry->save(file.path);
  const kv::Sealer sealer{{}};
  kv::CacheFileReader reader(file.path, sealer, 300);
  std::size_t longest = 0, left_out = 0;
  for (kv::SavedRun run; reader.next(run);) {
    longest = std::max(longest, run.tokens.size());
    if (run.tokens.empty()) ++left_out;
  }
  CHECK(longest <= 300 * 16);
  CHECK(longest > 200 * 16);
  CHECK(left_out > 5);
}

TEST_CASE("a damaged or cut file gives what is whole, and that is right") {
  const File file;
  Pool from;
  for (TokenId i = 0; i < 4; ++i) from.run(ids(48, 1000 * i));
  from.registry->save(file.path);
  const std::string whole = file.bytes();
  const auto loads = [&](const std::string& content) {
    file.write(content);
    Pool to;
    const std::size_t tokens = to.registry->load(file.path);
    to.cache.check_integrity();
    for (TokenId i = 0; i < 4; ++i) to.run(ids(48, 1000 * i));  // checks the KV
    return tokens;
  };
  CHECK(loads(whole) == 4 * 48);
  CHECK(loads("") == 0);
  for (std::size_t at = 0; at < whole.size(); at += 31) {
    CHECK(loads(whole.substr(0, at)) < 4 * 48);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    CHECK(loads(damaged) < 4 * 48);
  }
  CHECK(loads(whole + "more") == 4 * 48);
  CHECK(loads(whole.substr(whole.size() / 2)) == 0);  // no record stands where it was
}

TEST_CASE("a file that cannot be written or read is an error, and nothing is left of it") {
  const TemporaryDirectory directory;
  Pool pool;
  pool.run(ids(32));
  const std::filesystem::path missing = directory.path() / "no" / "folder";
  CHECK_THROWS_AS(pool.registry->save(missing), Error);
  CHECK_THROWS_AS(pool.registry->load(missing), Error);
  CHECK_THROWS_AS(pool.registry->load(directory.path()), Error);
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("with a key the file holds no token ids, and opens with that key only") {
  const File file;
  Pool from("m", 64, with_key(1));
  from.run(ids(64, 70000));
  from.registry->save(file.path);
  const Tokens some = ids(4, 70016);
  const auto needle = std::as_bytes(std::span(some));
  CHECK(file.bytes().find(std::string(reinterpret_cast<const char*>(needle.data()),
                                      needle.size())) == std::string::npos);
  Pool same("m", 64, with_key(1)), other("m", 64, with_key(2)), none;
  CHECK(same.registry->load(file.path) == 64);
  CHECK(other.registry->load(file.path) == 0);
  CHECK(none.registry->load(file.path) == 0);
}

TEST_CASE("a run whose namespace is not that of its salt is left out") {
  const File file;
  {
    const kv::Sealer sealer{{}};
    kv::CacheFileWriter writer(file.path, sealer);
    FakeDevice device;
    KvCache cache(device, tiny_layout(), {.blocks = 4});
    FakeSequence sequence(device, cache, kv::name_space_of("m", "a", ""));
    REQUIRE(sequence.start(ids(32), 0, {.salt = "b"}));
    sequence.compute();
    sequence.commit();
    sequence.drop();
    writer.add(cache, device);
    writer.finish();
  }
  Pool to;
  CHECK(to.registry->load(file.path) == 0);
}

TEST_CASE("a time to live goes on in the file, and others may not read it") {
  const File file;
  Pool from;
  from.run(ids(32), {.time_to_live = std::chrono::seconds(1000)});
  from.run(ids(32, 500));
  from.registry->save(file.path);
  const auto mode = std::filesystem::status(file.path).permissions();
  CHECK((mode & std::filesystem::perms::mask) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
  const kv::Sealer sealer{{}};
  kv::CacheFileReader reader(file.path, sealer, 64);
  std::size_t mortal = 0, immortal = 0;
  for (kv::SavedRun run; reader.next(run);) {
    ++(run.expires > 0 ? mortal : immortal);
    if (run.expires == 0) continue;
    CHECK(run.expires - kv::wall_seconds_now() > 900);
    run.expires = kv::wall_seconds_now() - 1;
    Pool late;
    CHECK(kv::restore(run, late.cache, late.device) == 0);
  }
  CHECK(mortal == 1);
  CHECK(immortal == 1);
}

TEST_CASE("labels are saved too") {
  const File file;
  Pool from;
  const auto labels = [&](const std::string& session, const std::string& tag) {
    return from.registry->cache_labels({.session = session, .tags = {tag}});
  };
  from.run(ids(32), labels("s", "t"));
  from.run(ids(32) + ids(32, 500), labels("s", "u"));
  from.registry->save(file.path);
  Pool to;
  CHECK(to.registry->load(file.path) == 64);
  CHECK(to.registry->invalidate_tag("u").complete());
  CHECK(to.cache.stats().blocks_cached == 0);  // `u` had used the front as well
  CHECK(to.registry->load(file.path) == 64);
  CHECK(to.registry->invalidate_session("s").complete());
  CHECK(to.cache.stats().blocks_cached == 0);
}

TEST_CASE("cache files survive mutations, sealed ones as well") {
  fuzz::run_corpus(fuzz::kCacheFile, "cache_file");
  fuzz::run_mutations(fuzz::kCacheFile, 500);
}

}  // namespace
}  // namespace incipit::test
