// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "fake_sequence.h"
#include "kv/kv_cache.h"
#include "support/catch.h"
#include "support/fake_device.h"

// Who may share with whom, hash collisions, and clear().

namespace incipit::test {
namespace {

using base::FieldWriter;
using kv::KvCache;

std::size_t run(FakeDevice& device, KvCache& cache, const std::string& name_space,
                const Tokens& prompt) {
  FakeSequence sequence(device, cache, name_space);
  REQUIRE(sequence.start(prompt));
  sequence.compute();
  sequence.commit();
  REQUIRE(sequence.intact());
  cache.check_integrity();
  return sequence.reused();
}

TEST_CASE("a change of any field of a namespace ends reuse, and none does not") {
  struct Fields {
    std::string weights = "w";
    std::string numerics = "cpu/avx2/1";
    std::string kv_type = "BF16";
    std::uint64_t rope = 10000;
    std::string salt = "s";
    std::string version = "1";
    std::string name() const {
      return FieldWriter()
          .add("weights", weights)
          .add("numerics", numerics)
          .add("kv_type", kv_type)
          .add("rope", rope)
          .add("salt", salt)
          .add("version", version)
          .str();
    }
  };
  const std::vector<Fields> all{
      {},
      {.weights = "x"},
      {.numerics = "cpu/avx2/2"},
      {.kv_type = "F16"},
      {.rope = 10001},
      {.salt = ""},
      {.version = ""},
  };
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 64});
  for (const Fields& fields : all) {
    CHECK(run(device, cache, fields.name(), ids(40)) == 0);
    CHECK(run(device, cache, fields.name(), ids(40)) == 32);
  }
  for (const Fields& fields : all) CHECK(run(device, cache, fields.name(), ids(40)) == 32);
}

// vLLM #44701: a salt that is equal to the name of an adapter.
TEST_CASE("fields that look alike when put together are told apart") {
  using namespace std::string_literals;
  const std::vector<std::string> names{
      FieldWriter().add("salt", "ab").add("version", "c").str(),
      FieldWriter().add("salt", "a").add("version", "bc").str(),
      FieldWriter().add("salt", "abc").add("version", "").str(),
      FieldWriter().add("salt", "").add("version", "abc").str(),
      FieldWriter().add("salt", "abc").str(),
      FieldWriter().add("version", "abc").str(),
      FieldWriter().add("saltabc", "").str(),
      FieldWriter().add("salt", "ab\0c"s).str(),
      FieldWriter().add("salt", FieldWriter().add("version", "abc").str()).str(),
      FieldWriter().add("salt", std::uint64_t{0x636261}).str(),
      FieldWriter().add("salt", "abc\0\0\0\0\0"s).str(),
  };
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 64});
  for (const std::string& name : names) CHECK(run(device, cache, name, ids(20)) == 0);
  for (const std::string& name : names) CHECK(run(device, cache, name, ids(20)) == 16);
}

// CVE-2025-46570: hits that tell one tenant what another one has asked.
TEST_CASE("a tenant sees nothing of another in its hits") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 20});
  run(device, cache, "a", ids(100));
  const CacheStats before = cache.stats();
  for (const std::size_t length : {1u, 15u, 16u, 17u, 96u, 100u}) {
    FakeSequence sequence(device, cache, "b");
    REQUIRE(sequence.start(ids(length)));
    CHECK(sequence.reused() == 0);
    CHECK(sequence.table().blocks().empty());
  }
  CHECK(cache.stats().tokens_reused == before.tokens_reused);
  CHECK(run(device, cache, "a", ids(100)) == 96);
}

TEST_CASE("without a namespace nothing is found and nothing is kept") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8, .poison_freed_blocks = true});
  run(device, cache, "a", ids(48));
  for (int i = 0; i < 3; ++i) CHECK(run(device, cache, "", ids(48)) == 0);
  CHECK(cache.stats().blocks_cached == 3);
  CHECK(cache.stats().blocks_in_use == 0);
  CHECK(run(device, cache, "", ids(16 * 8)) == 0);  // takes the room of what is cached
  CHECK(cache.stats().blocks_cached == 0);
}

std::uint64_t always_seven(std::uint64_t, std::span<const TokenId>) { return 7; }
std::uint64_t eight_bits(std::uint64_t parent, std::span<const TokenId> tokens) {
  return (parent * 17 + static_cast<std::uint32_t>(tokens.front())) % 256;
}
std::uint64_t ignores_parent(std::uint64_t, std::span<const TokenId> tokens) {
  return static_cast<std::uint32_t>(tokens.front());
}
std::uint64_t ignores_tokens(std::uint64_t parent, std::span<const TokenId>) { return parent + 1; }

// CVE-2025-25183, vLLM #54727, OpenVINO #3722: wrong KV behind a hash that collides.
TEST_CASE("colliding hashes change no result") {
  kv::KvCacheOptions options{.blocks = 100, .poison_freed_blocks = true};
  options.hash = GENERATE(as<decltype(options.hash)>{}, always_seven, eight_bits, ignores_parent,
                          ignores_tokens);
  FakeDevice device;
  KvCache cache(device, tiny_layout(), options);
  for (int round = 0; round < 2; ++round) {
    for (const char* name : {"a", "b"}) {
      for (TokenId i = 0; i < 4; ++i) {
        const Tokens prompt = ids(16, i) + ids(16, i) + ids(20, 3 - i);
        CHECK(run(device, cache, name, prompt) == (round == 0 ? 0 : 48));
      }
    }
  }
  CHECK(cache.stats().blocks_cached == 24);
}

TEST_CASE("clear() forgets everything; running sequences keep what they hold") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 20, .poison_freed_blocks = true});
  run(device, cache, "n", ids(64));
  FakeSequence a(device, cache, "n");
  FakeSequence b(device, cache, "n");
  REQUIRE(a.start(ids(50), 30));
  REQUIRE(b.start(ids(64) + ids(10, 100), 40));
  a.compute();
  b.compute();
  CHECK(a.table().blocks()[0] == b.table().blocks()[0]);

  cache.clear();
  cache.check_integrity();
  CHECK(cache.stats().blocks_cached == 0);
  CHECK(cache.stats().evictions == 0);
  CHECK(a.intact());
  CHECK(b.intact());
  CHECK(run(device, cache, "n", ids(64)) == 0);  // indexed afresh
  CHECK(run(device, cache, "n", ids(64)) == 63);

  // What they go on to compute is theirs alone.
  const std::size_t cached = cache.stats().blocks_cached;
  for (TokenId i = 0; i < 30; ++i) {
    a.generate(i);
    a.compute();
    a.commit();
    CHECK(a.intact());
  }
  b.commit();
  CHECK(b.intact());
  cache.check_integrity();
  CHECK(cache.stats().blocks_cached == cached);

  a.drop();
  CHECK(b.intact());  // the blocks that they shared
  cache.check_integrity();
  b.drop();
  CHECK(cache.stats().blocks_in_use == 0);
  cache.check_integrity();
  CHECK(run(device, cache, "n", ids(50) + ids(30)) == 50);
}

TEST_CASE("clear() before the first commit keeps a sequence out of the index") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  FakeSequence sequence(device, cache, "n");
  REQUIRE(sequence.start(ids(40)));
  cache.clear();
  sequence.compute();
  sequence.commit();
  CHECK(sequence.intact());
  CHECK(cache.stats().blocks_cached == 0);
  CHECK(run(device, cache, "n", ids(40)) == 0);
  cache.clear();
  cache.clear();
  CHECK(run(device, cache, "n", ids(40)) == 0);
}

// CTranslate2 #1450: a cache that cannot be emptied.
TEST_CASE("clear() gives all blocks back") {
  FakeDevice device;
  KvCache cache(device, tiny_layout(), {.blocks = 8});
  for (int i = 0; i < 5; ++i) {
    run(device, cache, "n", ids(16 * 8, 1000 * i));
    CHECK(cache.stats().blocks_cached == 8);
    cache.clear();
    cache.check_integrity();
  }
  CHECK(cache.stats().evictions == 0);
}

}  // namespace
}  // namespace incipit::test
