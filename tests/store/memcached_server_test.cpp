// SPDX-License-Identifier: Apache-2.0
// The memcached store against a real memcached; skips where none is installed.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "incipit/store.h"
#include "store/fake_store.h"
#include "store/server_process.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit {
namespace {

using namespace std::chrono_literals;
using test::memcached_server;
using test::pattern;
using test::read;
using test::ServerProcess;
using test::store_key;
using test::write;
using Clock = std::chrono::steady_clock;

MemcachedStoreOptions options_for(const ServerProcess& server) {
  MemcachedStoreOptions options;
  options.servers = {"127.0.0.1:" + std::to_string(server.port())};
  return options;
}

TEST_CASE("values of all sizes make the round trip through memcached") {
  if (!test::installed("memcached")) return;
  const ServerProcess server(memcached_server());
  const MemcachedStoreOptions options = options_for(server);
  const auto store = make_memcached_store(options);
  // The limit of a server as it comes is 1 MiB an item, all included.
  for (const std::size_t size :
       {0u, 1u, 1000u, (1u << 20) - 513, (1u << 20) - 512, (1u << 20) - 511, 1u << 20, 8u << 20}) {
    INFO(size);
    CHECK(read(*store, store_key(size)).status == StoreStatus::kMiss);
    const auto first = pattern(size, 1), second = pattern(size, 2);
    REQUIRE(write(*store, store_key(size), first) == StoreStatus::kOk);
    CHECK(read(*store, store_key(size)).holds(first));
    REQUIRE(write(*store, store_key(size), second) == StoreStatus::kOk);
    CHECK(read(*store, store_key(size)).holds(second));
  }
  const auto other = make_memcached_store(options);
  for (const std::size_t size : {0u, 1000u, 1u << 20}) {
    CHECK(read(*other, store_key(size)).holds(pattern(size, 2)));
    CHECK(store->erase(store_key(size), test::soon()) == StoreStatus::kOk);
    CHECK(store->erase(store_key(size), test::soon()) == StoreStatus::kOk);
    CHECK(read(*other, store_key(size)).status == StoreStatus::kMiss);
  }
}

TEST_CASE("the longest prefix makes names that memcached takes") {
  if (!test::installed("memcached")) return;
  const ServerProcess server(memcached_server());
  MemcachedStoreOptions options = options_for(server);
  options.key_prefix = std::string(128, '~');
  const auto store = make_memcached_store(options);
  REQUIRE(write(*store, store_key(1), pattern(3u << 20, 1)) == StoreStatus::kOk);
  CHECK(read(*store, store_key(1)).holds(pattern(3u << 20, 1)));
}

TEST_CASE("values in memcached expire") {
  if (!test::installed("memcached")) return;
  const ServerProcess server(memcached_server());
  const auto store = make_memcached_store(options_for(server));
  REQUIRE(write(*store, store_key(1), pattern(100, 1), 1s) == StoreStatus::kOk);
  REQUIRE(write(*store, store_key(2), pattern(3u << 20, 1), 1s) == StoreStatus::kOk);
  // A date, and one that 32 bits do not hold.
  REQUIRE(write(*store, store_key(3), pattern(100, 1), std::chrono::hours(24 * 31)) ==
          StoreStatus::kOk);
  REQUIRE(write(*store, store_key(4), pattern(100, 1), std::chrono::seconds::max()) ==
          StoreStatus::kOk);
  CHECK(read(*store, store_key(3)).is_hit());
  CHECK(read(*store, store_key(4)).is_hit());
  // Its clock ticks once a second.
  const auto until = Clock::now() + 10s;
  while ((read(*store, store_key(1)).is_hit() || read(*store, store_key(2)).is_hit()) &&
         Clock::now() < until) {
    std::this_thread::sleep_for(50ms);
  }
  CHECK(read(*store, store_key(1)).status == StoreStatus::kMiss);
  CHECK(read(*store, store_key(2)).status == StoreStatus::kMiss);
  CHECK(read(*store, store_key(3)).is_hit());
}

TEST_CASE("a memcached server with too little memory evicts, and nothing gets wrong") {
  if (!test::installed("memcached")) return;
  const ServerProcess server(memcached_server({"-m", "8"}));
  const auto store = make_memcached_store(options_for(server));
  unsigned hits = 0;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const StoreStatus status = write(*store, store_key(i), pattern(3u << 20, i));
    CHECK((status == StoreStatus::kOk || status == StoreStatus::kUnavailable));
  }
  for (std::uint64_t i = 0; i < 8; ++i) {
    const test::Read found = read(*store, store_key(i));
    hits += found.is_hit() ? 1u : 0u;
    CHECK((found.holds(pattern(3u << 20, i)) || found.status == StoreStatus::kMiss));
  }
  CHECK(hits > 0);
  CHECK(hits < 8);
}

TEST_CASE("a server whose items are smaller than was said refuses") {
  if (!test::installed("memcached")) return;
  const ServerProcess server(memcached_server({"-I", "512k"}));
  MemcachedStoreOptions options = options_for(server);
  const auto store = make_memcached_store(options);
  CHECK(write(*store, store_key(1), pattern(900'000, 1)) == StoreStatus::kTooLarge);
  CHECK(read(*store, store_key(1)).status == StoreStatus::kMiss);
  options.max_value_bytes = 512u << 10;
  const auto fitting = make_memcached_store(options);
  REQUIRE(write(*fitting, store_key(1), pattern(900'000, 1)) == StoreStatus::kOk);
  CHECK(read(*fitting, store_key(1)).holds(pattern(900'000, 1)));
  CHECK(read(*store, store_key(1)).holds(pattern(900'000, 1)));  // The manifest says it all.
}

TEST_CASE("a memcached server that is killed, restarted and frozen") {
  if (!test::installed("memcached")) return;
  ServerProcess server(memcached_server());
  const auto store = make_memcached_store(options_for(server));
  const auto value = pattern(3u << 20, 1);
  REQUIRE(write(*store, store_key(1), value) == StoreStatus::kOk);
  std::thread killer([&] {
    std::this_thread::sleep_for(20ms);
    server.kill();
  });
  StoreStatus status = StoreStatus::kOk;
  bool right = true;
  while (status == StoreStatus::kOk) {
    StoreBuffer read_value;
    status = store->get(store_key(1), Clock::now() + 1s, read_value);
    right = right && (status != StoreStatus::kOk ||
                      std::ranges::equal(read_value.bytes(), std::span(value)));
  }
  killer.join();
  CHECK(status == StoreStatus::kUnavailable);
  CHECK(right);
  server.restart();
  CHECK(read(*store, store_key(1)).status == StoreStatus::kMiss);
  REQUIRE(write(*store, store_key(1), value) == StoreStatus::kOk);
  server.freeze();
  const auto start = Clock::now();
  StoreBuffer ignored;
  CHECK(store->get(store_key(1), start + 100ms, ignored) == StoreStatus::kUnavailable);
  CHECK(store->put(store_key(1), value, 0s, start + 200ms) == StoreStatus::kUnavailable);
  CHECK(Clock::now() - start < 2s);
  server.thaw();
  CHECK(read(*store, store_key(1)).holds(value));
}

TEST_CASE("keys are spread over two memcached servers, and one is killed") {
  if (!test::installed("memcached")) return;
  const ServerProcess first(memcached_server());
  ServerProcess second(memcached_server());
  MemcachedStoreOptions options = options_for(first);
  options.servers.push_back(options_for(second).servers[0]);
  const auto store = make_memcached_store(options);
  for (std::uint64_t i = 0; i < 40; ++i) {
    REQUIRE(write(*store, store_key(i), pattern(1000, i)) == StoreStatus::kOk);
  }
  for (std::uint64_t i = 0; i < 40; ++i) CHECK(read(*store, store_key(i)).holds(pattern(1000, i)));
  second.kill();
  unsigned hits = 0;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const test::Read found = read(*store, store_key(i));
    hits += found.is_hit() ? 1u : 0u;
    CHECK((found.holds(pattern(1000, i)) || found.status == StoreStatus::kUnavailable));
  }
  CHECK(hits > 2);
  CHECK(hits < 38);
}

}  // namespace
}  // namespace incipit
