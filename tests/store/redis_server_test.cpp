// SPDX-License-Identifier: Apache-2.0
// The Redis store against a real redis-server; skips where none is installed.
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "incipit/store.h"
#include "store/fake_store.h"
#include "store/redis_node.h"
#include "store/server_process.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit {
namespace {

using namespace std::chrono_literals;
using test::pattern;
using test::read;
using test::redis_server;
using test::ServerProcess;
using test::store_key;
using test::write;
using Clock = std::chrono::steady_clock;

RedisStoreOptions options_for(const ServerProcess& server) {
  RedisStoreOptions options;
  options.port = server.port();
  return options;
}

// A command that the store has no use for.
store::RedisReply send(const RedisStoreOptions& options,
                       std::initializer_list<std::string_view> words,
                       store::RedisReply::Kind expected = store::RedisReply::Kind::kStatus) {
  store::RedisNode node({options.host, options.port}, options);
  const auto reply = node.call({{}, words, expected}, test::soon());
  REQUIRE(reply);
  return *reply;
}

long long count_keys(const RedisStoreOptions& options) {
  return send(options, {"DBSIZE"}, store::RedisReply::Kind::kInteger).integer;
}

TEST_CASE("values of all sizes make the round trip through Redis") {
  if (!test::installed("redis-server")) return;
  const ServerProcess server(redis_server());
  RedisStoreOptions options = options_for(server);
  SECTION("whole") {}
  SECTION("split") { options.max_value_bytes = 1u << 20; }
  const auto store = make_redis_store(options);
  for (const std::size_t size : {0u, 1u, 1000u, 16384u, (1u << 20) - 1, 1u << 20, 8u << 20}) {
    INFO(size);
    CHECK(read(*store, store_key(size)).status == StoreStatus::kMiss);
    const auto first = pattern(size, 1), second = pattern(size, 2);
    REQUIRE(write(*store, store_key(size), first) == StoreStatus::kOk);
    CHECK(read(*store, store_key(size)).holds(first));
    REQUIRE(write(*store, store_key(size), second) == StoreStatus::kOk);
    CHECK(read(*store, store_key(size)).holds(second));
  }
  // Another process finds them.
  const auto other = make_redis_store(options);
  CHECK(read(*other, store_key(1u << 20)).holds(pattern(1u << 20, 2)));
  for (const std::size_t size : {0u, 1000u, 1u << 20, 8u << 20}) {
    CHECK(store->erase(store_key(size), test::soon()) == StoreStatus::kOk);
    CHECK(store->erase(store_key(size), test::soon()) == StoreStatus::kOk);
    CHECK(read(*other, store_key(size)).status == StoreStatus::kMiss);
  }
  CHECK(send(options, {"FLUSHALL"}).text == "OK");
  REQUIRE(write(*store, store_key(1), pattern(3u << 20, 1)) == StoreStatus::kOk);
  CHECK(store->erase(store_key(1), test::soon()) == StoreStatus::kOk);
  CHECK(count_keys(options) == 0);  // No part is left behind.
}

TEST_CASE("values in Redis expire") {
  if (!test::installed("redis-server")) return;
  const ServerProcess server(redis_server());
  RedisStoreOptions options = options_for(server);
  options.max_value_bytes = 1024;
  const auto store = make_redis_store(options);
  REQUIRE(write(*store, store_key(1), pattern(100, 1), 1s) == StoreStatus::kOk);
  REQUIRE(write(*store, store_key(2), pattern(5000, 1), 1s) == StoreStatus::kOk);
  REQUIRE(write(*store, store_key(3), pattern(100, 1), 3600s) == StoreStatus::kOk);
  REQUIRE(write(*store, store_key(4), pattern(100, 1), std::chrono::seconds::max()) ==
          StoreStatus::kOk);
  CHECK(read(*store, store_key(1)).is_hit());
  CHECK(read(*store, store_key(2)).is_hit());
  std::this_thread::sleep_for(1100ms);
  CHECK(read(*store, store_key(1)).status == StoreStatus::kMiss);
  CHECK(read(*store, store_key(2)).status == StoreStatus::kMiss);
  CHECK(read(*store, store_key(3)).is_hit());
  CHECK(read(*store, store_key(4)).is_hit());
}

TEST_CASE("keys of other programs are left alone") {
  if (!test::installed("redis-server")) return;
  const ServerProcess server(redis_server());
  const auto store = make_redis_store(options_for(server));
  REQUIRE(write(*store, store_key(1), pattern(100, 1)) == StoreStatus::kOk);
  const store::RedisReply keys =
      send(options_for(server), {"KEYS", "*"}, store::RedisReply::Kind::kArray);
  REQUIRE(keys.elements.size() == 1);
  const std::string name = keys.elements[0].text;
  CHECK(name.starts_with("incipit:"));
  // A list in the value's place is a miss, and is overwritten.
  REQUIRE(store->erase(store_key(1), test::soon()) == StoreStatus::kOk);
  send(options_for(server), {"RPUSH", name, "x"}, store::RedisReply::Kind::kInteger);
  CHECK(read(*store, store_key(1)).status == StoreStatus::kMiss);
  REQUIRE(write(*store, store_key(1), pattern(100, 1)) == StoreStatus::kOk);
  CHECK(read(*store, store_key(1)).is_hit());
}

TEST_CASE("user, password and database are used") {
  if (!test::installed("redis-server")) return;
  const ServerProcess server(redis_server({"--requirepass", "secret"}));
  RedisStoreOptions options = options_for(server);
  const auto works = [&] {
    return write(*make_redis_store(options), store_key(1), pattern(9, 1)) == StoreStatus::kOk;
  };
  CHECK_FALSE(works());
  options.password = "wrong";
  CHECK_FALSE(works());
  options.password = "secret";
  CHECK(works());
  const RedisStoreOptions administrator = options;
  options.database = 5;
  CHECK(read(*make_redis_store(options), store_key(1)).status == StoreStatus::kMiss);
  CHECK(works());
  options.database = 1000;
  CHECK_FALSE(works());
  options.database = 0;
  send(administrator, {"ACL", "SETUSER", "me", "on", ">pass word", "~incipit:*", "+@all"});
  options.user = "me";
  CHECK_FALSE(works());
  options.password = "pass word";
  CHECK(works());
  options.key_prefix = "elsewhere:";
  CHECK_FALSE(works());
}

TEST_CASE("a Redis server that is killed and restarted in the middle of traffic") {
  if (!test::installed("redis-server")) return;
  ServerProcess server(redis_server());
  const auto store = make_redis_store(options_for(server));
  const auto value = pattern(1u << 20, 1);
  for (int round = 0; round < 3; ++round) {
    REQUIRE(write(*store, store_key(1), value) == StoreStatus::kOk);
    CHECK(read(*store, store_key(1)).holds(value));
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
    const auto start = Clock::now();
    CHECK(store->put(store_key(1), value, 0s, start + 1s) == StoreStatus::kUnavailable);
    CHECK(Clock::now() - start < 3s);
    server.restart();
    CHECK(read(*store, store_key(1)).status == StoreStatus::kMiss);
  }
}

TEST_CASE("a Redis server that freezes costs the deadline, and is used when it is back") {
  if (!test::installed("redis-server")) return;
  ServerProcess server(redis_server());
  const auto store = make_redis_store(options_for(server));
  REQUIRE(write(*store, store_key(1), pattern(100, 1)) == StoreStatus::kOk);
  server.freeze();
  const auto start = Clock::now();
  StoreBuffer value;
  CHECK(store->get(store_key(1), start + 100ms, value) == StoreStatus::kUnavailable);
  CHECK(store->put(store_key(1), pattern(8u << 20, 1), 0s, start + 200ms) ==
        StoreStatus::kUnavailable);
  CHECK(Clock::now() - start < 2s);
  server.thaw();
  // What it says to those who are gone reaches nobody else.
  CHECK(read(*store, store_key(1)).holds(pattern(100, 1)));
  CHECK(read(*store, store_key(2)).status == StoreStatus::kMiss);
}

TEST_CASE("a Redis server with too little memory evicts or refuses, and nothing gets wrong") {
  if (!test::installed("redis-server")) return;
  const bool evicts = GENERATE(true, false);
  const ServerProcess server(redis_server(
      {"--maxmemory", "4mb", "--maxmemory-policy", evicts ? "allkeys-lru" : "noeviction"}));
  RedisStoreOptions options = options_for(server);
  options.max_value_bytes = 64u << 10;
  const auto store = make_redis_store(options);
  unsigned written = 0, hits = 0;
  for (std::uint64_t i = 0; i < 80; ++i) {
    const StoreStatus status = write(*store, store_key(i), pattern(100'000, i));
    CHECK((status == StoreStatus::kOk || status == StoreStatus::kUnavailable));
    written += status == StoreStatus::kOk ? 1u : 0u;
  }
  for (std::uint64_t i = 0; i < 80; ++i) {
    const test::Read found = read(*store, store_key(i));
    hits += found.is_hit() ? 1u : 0u;
    CHECK((found.holds(pattern(100'000, i)) || found.status == StoreStatus::kMiss));
  }
  CHECK(hits > 0);
  CHECK(hits < 80);
  CHECK((evicts ? written == 80 : written < 80));
}

TEST_CASE("a value over the server's own limit is unavailable and harms nothing") {
  if (!test::installed("redis-server")) return;
  const ServerProcess server(redis_server({"--proto-max-bulk-len", "1mb"}));
  const auto store = make_redis_store(options_for(server));
  REQUIRE(write(*store, store_key(1), pattern(1000, 1)) == StoreStatus::kOk);
  CHECK(write(*store, store_key(2), pattern(3u << 20, 1)) == StoreStatus::kUnavailable);
  CHECK(read(*store, store_key(1)).is_hit());
  CHECK(read(*store, store_key(2)).status == StoreStatus::kMiss);
}

TEST_CASE("a replica is read while the master is down") {
  if (!test::installed("redis-server")) return;
  ServerProcess master(redis_server({"--repl-diskless-sync-delay", "0"}));
  const ServerProcess replica(
      redis_server({"--replicaof", "127.0.0.1 " + std::to_string(master.port())}));
  RedisStoreOptions options = options_for(master);
  options.replicas = {{"127.0.0.1", replica.port()}};
  const auto store = make_redis_store(options);
  const auto direct = make_redis_store(options_for(replica));
  REQUIRE(write(*store, store_key(1), pattern(1000, 1)) == StoreStatus::kOk);
  const auto until = Clock::now() + 20s;
  while (!read(*direct, store_key(1)).is_hit() && Clock::now() < until) {
    std::this_thread::sleep_for(10ms);
  }
  CHECK(write(*direct, store_key(2), pattern(9, 1)) == StoreStatus::kUnavailable);  // READONLY

  master.kill();
  for (int i = 0; i < 3; ++i) CHECK(read(*store, store_key(1)).holds(pattern(1000, 1)));
  CHECK(read(*store, store_key(2)).status == StoreStatus::kMiss);
  CHECK(write(*store, store_key(2), pattern(9, 1)) == StoreStatus::kUnavailable);
  master.restart();
  CHECK(write(*store, store_key(2), pattern(9, 1)) == StoreStatus::kOk);
  CHECK(read(*store, store_key(2)).is_hit());
}

}  // namespace
}  // namespace incipit
