// SPDX-License-Identifier: Apache-2.0
#include "store/split_value.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "store/fake_store.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit::store {
namespace {

using namespace std::chrono_literals;
using test::pattern;
using test::read;
using test::store_key;
using test::write;

constexpr std::uint64_t kMaxBody = 100;

// A server in memory.
class MapStore final : public SplitStore {
 public:
  struct Item {
    ItemKind kind;
    std::vector<std::byte> body;
    std::chrono::seconds time_to_live;
  };

  MapStore() : SplitStore("test:", kMaxBody) {}
  std::string_view name() const noexcept override { return "map"; }

  std::map<std::string, Item> items;
  std::vector<std::string> written;  // names, in order
  int writes_left = 1 << 20;

 private:
  StoreStatus read_item(const std::string& name, bool, Deadline, ItemRoom room) override {
    const auto found = items.find(name);
    if (found == items.end()) return StoreStatus::kMiss;
    const std::vector<std::byte>& body = found->second.body;
    const auto to = room(found->second.kind, body.size());
    if (!to) return StoreStatus::kMiss;
    REQUIRE(to->size() == body.size());
    std::ranges::copy(body, to->begin());
    return StoreStatus::kOk;
  }
  StoreStatus write_item(const std::string& name, ItemKind kind, base::Bytes body,
                         std::chrono::seconds time_to_live, Deadline) override {
    if (body.size() > kMaxBody) return StoreStatus::kTooLarge;
    if (writes_left-- <= 0) return StoreStatus::kUnavailable;
    items[name] = {kind, {body.begin(), body.end()}, time_to_live};
    written.push_back(name);
    return StoreStatus::kOk;
  }
  StoreStatus erase_item(const std::string& name, Deadline) override {
    items.erase(name);
    return StoreStatus::kOk;
  }
};

std::string main_name(const MapStore& store) { return store.written.back(); }

TEST_CASE("values of all sizes around the limit come back") {
  const std::size_t size =
      GENERATE(0u, 1u, 99u, 100u, 101u, 150u, 199u, 200u, 201u, 299u, 300u, 301u, 5000u, 10007u);
  MapStore store;
  const auto value = pattern(size, 1);
  REQUIRE(write(store, store_key(1), value) == StoreStatus::kOk);
  CHECK(store.items.size() == (size <= 100 ? 1 : (size + 99) / 100 + 1));
  CHECK(read(store, store_key(1)).holds(value));
  CHECK(read(store, store_key(2)).status == StoreStatus::kMiss);
  for (const auto& [name, item] : store.items) {
    CHECK(name.size() <= 250);
    CHECK(std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; }));
  }
}

TEST_CASE("names with the longest prefix fit memcached") {
  // Prefix, digest, ':', generation, ':', index.
  CHECK(SplitStore::kMaxPrefix + 64 + 1 + 32 + 1 + 5 <= 250);
}

TEST_CASE("a value that looks like a manifest is a value") {
  MapStore store;
  REQUIRE(write(store, store_key(1), pattern(500, 1)) == StoreStatus::kOk);
  const std::vector<std::byte> manifest = store.items.at(main_name(store)).body;
  REQUIRE(manifest.size() == SplitStore::kManifestBytes);
  REQUIRE(write(store, store_key(2), manifest) == StoreStatus::kOk);
  CHECK(read(store, store_key(2)).holds(manifest));
}

TEST_CASE("the manifest is written last, so that half a value is none") {
  MapStore store;
  store.writes_left = GENERATE(0, 1, 4, 5);
  CHECK(write(store, store_key(1), pattern(500, 1)) == StoreStatus::kUnavailable);
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
}

TEST_CASE("a missing, foreign or cut part makes a value a miss") {
  MapStore store;
  REQUIRE(write(store, store_key(1), pattern(450, 1)) == StoreStatus::kOk);
  const std::string part = store.written.at(GENERATE(0u, 2u, 4u));
  SECTION("missing") { store.items.erase(part); }
  SECTION("shorter") { store.items.at(part).body.pop_back(); }
  SECTION("longer") { store.items.at(part).body.emplace_back(); }
  SECTION("no part") { store.items.at(part).kind = ItemKind::kValue; }
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
  REQUIRE(write(store, store_key(1), pattern(450, 1)) == StoreStatus::kOk);
  CHECK(read(store, store_key(1)).holds(pattern(450, 1)));
}

TEST_CASE("a reader never mixes two writers") {
  // The second writer fails after any number of its parts: the first value stays whole.
  for (int parts = 0; parts <= 5; ++parts) {
    MapStore store;
    REQUIRE(write(store, store_key(1), pattern(500, 1)) == StoreStatus::kOk);
    store.writes_left = parts;
    REQUIRE(write(store, store_key(1), pattern(500, 2)) == StoreStatus::kUnavailable);
    CHECK(read(store, store_key(1)).holds(pattern(500, 1)));
    store.writes_left = 100;
    REQUIRE(write(store, store_key(1), pattern(500, 2)) == StoreStatus::kOk);
    CHECK(read(store, store_key(1)).holds(pattern(500, 2)));
  }
}

TEST_CASE("erasing takes the parts along") {
  MapStore store;
  REQUIRE(write(store, store_key(1), pattern(500, 1)) == StoreStatus::kOk);
  REQUIRE(write(store, store_key(2), pattern(50, 1)) == StoreStatus::kOk);
  REQUIRE(store.items.size() == 7);
  CHECK(store.erase(store_key(1), test::soon()) == StoreStatus::kOk);
  CHECK(store.items.size() == 1);
  CHECK(store.erase(store_key(2), test::soon()) == StoreStatus::kOk);
  CHECK(store.items.empty());
  CHECK(store.erase(store_key(2), test::soon()) == StoreStatus::kOk);
}

TEST_CASE("a forged manifest is a miss and costs little") {
  MapStore store;
  REQUIRE(write(store, store_key(1), pattern(500, 1)) == StoreStatus::kOk);
  std::vector<std::byte>& manifest = store.items.at(main_name(store)).body;
  // Magic, total and count of parts.
  for (std::size_t i = 0; i < 24; ++i) {
    for (const int mask : {0x01, 0x80, 0xff}) {
      const std::byte right = manifest[i];
      manifest[i] ^= static_cast<std::byte>(mask);
      INFO("byte " << i << " xor " << mask);
      CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
      manifest[i] = right;
    }
  }
  CHECK(read(store, store_key(1)).is_hit());
  manifest.pop_back();
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
}

TEST_CASE("what is too large for any number of parts is refused") {
  MapStore store;
  StoreBuffer value;  // Of any content: nobody looks at it.
  CHECK(write(store, store_key(1), value.resize(kMaxBody * SplitStore::kMaxParts + 1)) ==
        StoreStatus::kTooLarge);
  CHECK(store.items.empty());
}

TEST_CASE("times to live reach every item, within the bounds of servers") {
  MapStore store;
  const auto time_to_live_of = [&](std::chrono::seconds given) {
    REQUIRE(write(store, store_key(1), pattern(150, 1), given) == StoreStatus::kOk);
    const auto time = store.items.at(main_name(store)).time_to_live;
    for (const auto& [name, item] : store.items) CHECK(item.time_to_live == time);
    return time;
  };
  CHECK(time_to_live_of(0s) == 0s);
  CHECK(time_to_live_of(1s) == 1s);
  CHECK(time_to_live_of(3600s) == 3600s);
  CHECK(time_to_live_of(-5s) == 1s);
  CHECK(time_to_live_of(std::chrono::seconds::max()) == std::chrono::hours(24 * 3650));
}

}  // namespace
}  // namespace incipit::store
