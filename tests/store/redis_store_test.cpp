// SPDX-License-Identifier: Apache-2.0
// The Redis store against servers that misbehave.
#include <atomic>
#include <chrono>
#include <string>

#include "incipit/error.h"
#include "incipit/store.h"
#include "store/fake_server.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "store/timed_calls.h"
#include "support/catch.h"

namespace incipit {
namespace {

using namespace std::chrono_literals;
using test::check_recovery;
using test::FakeServer;
using test::get;
using test::put;
using test::redis_script;
using test::redis_string;
using test::store_key;
using Clock = std::chrono::steady_clock;
using Connection = FakeServer::Connection;
using Words = std::vector<std::string>;

RedisStoreOptions options_for(const FakeServer& server) {
  RedisStoreOptions options;
  options.port = server.port();
  options.max_value_bytes = 1u << 20;
  return options;
}

// One value for all keys; SET and DEL succeed.
std::string well(const Words& words) {
  if (words[0].starts_with("GET")) return redis_string("Vhello");
  return words[0] == "DEL" ? ":1\r\n" : "+OK\r\n";
}

// Answers every command with `reply`.
FakeServer::Script always(std::string reply) {
  return redis_script([reply](const Words&) { return reply; });
}

TEST_CASE("commands are as Redis expects them") {
  std::vector<Words> heard;
  FakeServer server(redis_script([&](const Words& words) {
    heard.push_back(words);
    return well(words);
  }));
  RedisStoreOptions options = options_for(server);
  options.user = "me";
  options.password = "secret word\r\n";
  options.database = 3;
  options.key_prefix = "p r\n";
  const auto store = make_redis_store(options);
  CHECK(get(*store) == StoreStatus::kOk);
  REQUIRE(heard.size() == 3);
  CHECK(heard[0] == Words{"AUTH", "me", "secret word\r\n"});
  CHECK(heard[1] == Words{"SELECT", "3"});
  CHECK(heard[2].size() == 2);
  CHECK(heard[2][0] == "GET");
  const std::string name = heard[2][1];
  CHECK(name.starts_with("p r\n"));
  CHECK(name.size() == 4 + 64);

  CHECK(store->put(store_key(1), test::pattern(0, 1), 0s, test::soon()) == StoreStatus::kOk);
  CHECK(heard.back() == Words{"SET", name, "V"});
  CHECK(store->put(store_key(1), test::pattern(0, 1), 60s, test::soon()) == StoreStatus::kOk);
  CHECK(heard.back() == Words{"SET", name, "V", "EX", "60"});
  CHECK(store->erase(store_key(1), test::soon()) == StoreStatus::kOk);
  CHECK(heard.back() == Words{"DEL", name});
  CHECK(server.connections() == 1);
  CHECK(store->name() == "redis");
  CHECK(store->size_bytes() == 0);
}

TEST_CASE("options of a Redis store that contradict are refused") {
  RedisStoreOptions options;
  const auto refused = [&] {
    try {
      make_redis_store(options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  CHECK_FALSE(refused());
  SECTION("no host") { options.host = ""; }
  SECTION("no port") { options.port = 0; }
  SECTION("a replica without port") { options.replicas = {{"localhost", std::uint16_t{0}}}; }
  SECTION("a cluster with a database") { options.cluster = true, options.database = 1; }
  SECTION("a cluster with replicas") {
    options.cluster = true;
    options.replicas = {{"localhost", std::uint16_t{1}}};
  }
  SECTION("a user without password") { options.user = "me"; }
  SECTION("a negative database") { options.database = -1; }
  SECTION("a long prefix") { options.key_prefix = std::string(129, 'a'); }
  SECTION("no connection") { options.connections = 0; }
  SECTION("no room") { options.max_value_bytes = 1023; }
  CHECK(refused());
}

TEST_CASE("errors of a Redis server are not the caller's") {
  const std::string reply =
      GENERATE(as<std::string>{}, "-OOM command not allowed\r\n", "-LOADING Redis is loading\r\n",
               "-READONLY You can't write\r\n", "-NOAUTH needed\r\n", "-MOVED 1 127.0.0.1:1\r\n",
               "-ERR\r\n", "-\r\n");
  FakeServer server(always(reply));
  const auto store = make_redis_store(options_for(server));
  CHECK(get(*store) == StoreStatus::kUnavailable);
  CHECK(put(*store) == StoreStatus::kUnavailable);
  CHECK(store->erase(store_key(1), test::soon()) == StoreStatus::kUnavailable);
  // An error is an answer, and its connection well; a master no longer is left at once.
  CHECK(server.connections() == (reply.starts_with("-READONLY") ? 3 : 1));
  if (!reply.starts_with("-READONLY")) {
    server.set(redis_script(well));
    CHECK(get(*store) == StoreStatus::kUnavailable);
  } else {
    check_recovery(server, redis_script(well), *store);
  }
}

TEST_CASE("what is no value of ours is a miss") {
  const std::string reply =
      GENERATE(as<std::string>{}, "$-1\r\n", "-WRONGTYPE Operation against a key\r\n", "$0\r\n\r\n",
               "$1\r\nx\r\n", "$6\r\nxhello\r\n", "$6\r\nMhello\r\n", "$6\r\nPhello\r\n");
  FakeServer server(always(reply));
  const auto store = make_redis_store(options_for(server));
  CHECK(get(*store) == StoreStatus::kMiss);
  CHECK(get(*store) == StoreStatus::kMiss);
  CHECK(server.connections() == 1);
}

TEST_CASE("a value above the limit is refused by its length") {
  const std::string length =
      GENERATE(as<std::string>{}, "1048577", "99999999999", "18446744073709551615");
  FakeServer server(always("$" + length + "\r\nV"));
  const auto store = make_redis_store(options_for(server));
  CHECK(get(*store) == StoreStatus::kMiss);
  check_recovery(server, redis_script(well), *store);
}

TEST_CASE("nonsense is no answer") {
  const std::string reply = GENERATE(
      as<std::string>{}, "hello\r\n", "\r\n", ":1\r\n", "*1\r\n$1\r\nx\r\n", "*2147483647\r\n",
      "$x\r\n", "$-2\r\n", "$99999999999999999999999\r\n", "$6\r\nVhelloXX", "+OK\r\n+OK\r\n",
      std::string(100'000, '+'), std::string(100'000, '$'), std::string(100'000, '-'));
  FakeServer server(always(reply));
  const auto store = make_redis_store(options_for(server));
  CHECK(get(*store) == StoreStatus::kUnavailable);
  check_recovery(server, redis_script(well), *store);
}

TEST_CASE("a Redis server that refuses or hangs costs the deadline at most") {
  SECTION("refuses") {
    RedisStoreOptions options;
    options.port = test::free_port();
    const auto store = make_redis_store(options);
    const auto start = Clock::now();
    CHECK(get(*store) == StoreStatus::kUnavailable);
    CHECK(put(*store) == StoreStatus::kUnavailable);
    CHECK(Clock::now() - start < 2s);
    FakeServer server(redis_script(well), options.port);
    check_recovery(server, redis_script(well), *store);
  }
  SECTION("hangs") {
    FakeServer server([](Connection& connection) { connection.hang(); });
    const auto store = make_redis_store(options_for(server));
    CHECK(get(*store, 50ms) == StoreStatus::kUnavailable);
    CHECK(put(*store, 5, 50ms) == StoreStatus::kUnavailable);
    CHECK(put(*store, 1u << 20, 50ms) == StoreStatus::kUnavailable);
    check_recovery(server, redis_script(well), *store);
  }
  SECTION("hangs at the login") {
    FakeServer server([](Connection& connection) { connection.hang(); });
    RedisStoreOptions options = options_for(server);
    options.password = "secret";
    const auto store = make_redis_store(options);
    CHECK(get(*store, 50ms) == StoreStatus::kUnavailable);
    check_recovery(server, redis_script(well), *store);
  }
  SECTION("no time at all") {
    FakeServer server(redis_script(well));
    const auto store = make_redis_store(options_for(server));
    CHECK(get(*store, -1s) == StoreStatus::kUnavailable);
    check_recovery(server, redis_script(well), *store);
  }
}

TEST_CASE("a Redis server that answers a byte at a time costs the deadline") {
  const std::string reply = GENERATE(redis_string(std::string(1000, 'V')), std::string(1000, '-'),
                                     "*1000\r\n" + std::string(1000, ':'));
  FakeServer server([&](Connection& connection) {
    connection.read_command();
    connection.drip(reply, 50ms);
  });
  const auto store = make_redis_store(options_for(server));
  CHECK(get(*store, 220ms) == StoreStatus::kUnavailable);
  check_recovery(server, redis_script(well), *store);
}

TEST_CASE("a Redis server that dies in the middle of a value is unavailable") {
  const std::string reply =
      GENERATE(as<std::string>{}, "", "$", "$6", "$6\r\n", "$6\r\nV", "$6\r\nVhell", "$6\r\nVhello",
               "$6\r\nVhello\r", "+", "*1\r\n", "-ERR");
  FakeServer server([&](Connection& connection) {
    connection.read_command();
    connection.send(reply);
  });
  const auto store = make_redis_store(options_for(server));
  CHECK(get(*store) == StoreStatus::kUnavailable);
  CHECK(put(*store, 1u << 19) == StoreStatus::kUnavailable);
  check_recovery(server, redis_script(well), *store);
}

TEST_CASE("a Redis server that closes idle connections is asked once more") {
  FakeServer server([](Connection& connection) {
    connection.send(well(connection.read_command()));
    connection.read_command();  // Closed before it was answered.
  });
  const auto store = make_redis_store(options_for(server));
  for (int i = 0; i < 3; ++i) CHECK(get(*store) == StoreStatus::kOk);
  CHECK(server.connections() == 3);
}

TEST_CASE("a login that is refused is no connection") {
  std::atomic<bool> asked = false;
  FakeServer server(redis_script([&](const Words& words) -> std::string {
    if (words[0] != "AUTH") asked = true;
    return words[0] == "AUTH" ? "-WRONGPASS invalid\r\n" : well(words);
  }));
  RedisStoreOptions options = options_for(server);
  options.password = "wrong";
  const auto store = make_redis_store(options);
  CHECK(get(*store) == StoreStatus::kUnavailable);
  CHECK_FALSE(asked.load());
}

TEST_CASE("replicas are read while the master does not answer, and never written") {
  std::atomic<unsigned> writes = 0, reads = 0;
  FakeServer replica(redis_script([&](const Words& words) {
    ++(words[0].starts_with("GET") ? reads : writes);
    return well(words);
  }));
  FakeServer dead([](Connection&) {});
  FakeServer master(redis_script(well));
  RedisStoreOptions options = options_for(master);
  options.replicas = {{"127.0.0.1", dead.port()}, {"127.0.0.1", replica.port()}};
  const auto store = make_redis_store(options);
  CHECK(get(*store) == StoreStatus::kOk);
  CHECK(reads == 0);

  SECTION("the master has no memory left, which is no reason to read elsewhere") {
    master.set(redis_script([](const Words& words) {
      return words[0] == "SET" ? std::string("-OOM command not allowed\r\n") : well(words);
    }));
    const auto fresh = make_redis_store(options);
    CHECK(put(*fresh) == StoreStatus::kUnavailable);
    CHECK(get(*fresh) == StoreStatus::kOk);
    CHECK(reads == 0);
  }
  SECTION("the master hangs") {
    master.set([](Connection& connection) { connection.hang(); });
    options.port = master.port();
    const auto fresh = make_redis_store(options);
    const auto start = Clock::now();
    CHECK(get(*fresh, 400ms) == StoreStatus::kOk);
    CHECK(Clock::now() - start >= 200ms);  // The master's half of the time.
    CHECK(reads == 1);
    for (int i = 0; i < 10; ++i) CHECK(get(*fresh, 400ms) == StoreStatus::kOk);
    CHECK(put(*fresh, 5, 50ms) == StoreStatus::kUnavailable);
    CHECK(fresh->erase(store_key(1), Clock::now() + 50ms) == StoreStatus::kUnavailable);
    CHECK(writes == 0);
  }
  SECTION("the master is loading, and is asked again after a while") {
    std::atomic<bool> loading = true;
    master.set(redis_script([&](const Words& words) {
      return loading ? std::string("-LOADING soon\r\n") : well(words);
    }));
    const auto fresh = make_redis_store(options);
    CHECK(get(*fresh) == StoreStatus::kOk);
    CHECK(reads == 1);
    loading = false;
    CHECK(get(*fresh) == StoreStatus::kOk);
    CHECK(reads == 2);
    // A write that the master takes shows that it is back.
    CHECK(put(*fresh) == StoreStatus::kOk);
    CHECK(get(*fresh) == StoreStatus::kOk);
    CHECK(reads == 2);
  }
}

}  // namespace
}  // namespace incipit
