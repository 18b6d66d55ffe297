// SPDX-License-Identifier: Apache-2.0
// The memcached store against servers that misbehave.
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "incipit/error.h"
#include "incipit/store.h"
#include "store/fake_server.h"
#include "store/fake_store.h"
#include "store/memcached_ring.h"
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
using test::store_key;
using Connection = FakeServer::Connection;

std::string address_of(const FakeServer& server) {
  return "127.0.0.1:" + std::to_string(server.port());
}

std::shared_ptr<Store> store_of(const FakeServer& server, std::uint64_t max_value = 1u << 20) {
  MemcachedStoreOptions options;
  options.servers = {address_of(server)};
  options.max_value_bytes = max_value;
  return make_memcached_store(options);
}

// The name in "get NAME" and "delete NAME".
std::string name_in(const std::string& line) { return line.substr(line.find(' ') + 1); }

// Answers a request: with "hello" for any key, or that all is well.
void answer_well(Connection& connection, const std::string& line) {
  if (line.starts_with("get ")) {
    connection.send("VALUE " + name_in(line) + " 0 6\r\nVhello\r\nEND\r\n");
  } else if (line.starts_with("set ")) {
    connection.read_bytes(std::stoul(line.substr(line.rfind(' '))) + 2);
    connection.send("STORED\r\n");
  } else {
    connection.send("DELETED\r\n");
  }
}

void well(Connection& connection) {
  for (std::string line; !(line = connection.read_line()).empty();) answer_well(connection, line);
}

// Answers any request with `reply`, in which '@' stands for the key.
FakeServer::Script always(std::string reply) {
  return [reply](Connection& connection) {
    for (std::string line; !(line = connection.read_line()).empty();) {
      std::string text = reply;
      if (line.starts_with("set ")) {
        connection.read_bytes(std::stoul(line.substr(line.rfind(' '))) + 2);
      } else if (const std::size_t at = text.find('@'); at != std::string::npos) {
        text.replace(at, 1, name_in(line));
      }
      if (text.empty() || !connection.send(text)) return;
    }
  };
}

TEST_CASE("requests are as memcached expects them") {
  std::vector<std::string> heard;
  FakeServer server([&](Connection& connection) {
    for (std::string line; !(line = connection.read_line()).empty();) {
      heard.push_back(line);
      answer_well(connection, line);
    }
  });
  const auto store = store_of(server);
  CHECK(get(*store) == StoreStatus::kOk);
  REQUIRE(heard.size() == 1);
  const std::string name = name_in(heard[0]);
  CHECK(heard[0] == "get " + name);
  CHECK(name.starts_with("incipit:"));
  CHECK(name.size() == 8 + 64);
  const auto put_for = [&](std::chrono::seconds time) {
    CHECK(store->put(store_key(1), test::pattern(5, 1), time, test::soon()) == StoreStatus::kOk);
    return heard.back();
  };
  CHECK(put_for(0s) == "set " + name + " 0 0 6");
  CHECK(put_for(60s) == "set " + name + " 0 60 6");
  CHECK(put_for(2592000s) == "set " + name + " 0 2592000 6");
  // More than 30 days are a date.
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const long date = std::stol(put_for(2592001s).substr(("set " + name + " 0 ").size()));
  CHECK(date >= now.count() + 2592001);
  CHECK(date <= now.count() + 2592001 + 60);
  CHECK(std::stol(put_for(std::chrono::hours(24 * 36500)).substr(("set " + name + " 0 ").size())) <=
        2147483647);
  CHECK(store->erase(store_key(1), test::soon()) == StoreStatus::kOk);
  CHECK(heard.back() == "delete " + name);
  CHECK(server.connections() == 1);
  CHECK(store->name() == "memcached");
  CHECK(store->size_bytes() == 0);
}

TEST_CASE("options of a memcached store that make no sense are refused") {
  MemcachedStoreOptions options;
  const auto refused = [&] {
    try {
      make_memcached_store(options);
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidArgument;
    }
    return false;
  };
  CHECK_FALSE(refused());
  SECTION("no server") { options.servers = {}; }
  SECTION("no port") { options.servers = {"127.0.0.1:11211", "localhost"}; }
  SECTION("a space in the prefix") { options.key_prefix = "a b"; }
  SECTION("an end of line in the prefix") { options.key_prefix = "a\r\nflush_all\r\n"; }
  SECTION("a byte above ASCII in the prefix") { options.key_prefix = "\xff"; }
  SECTION("a long prefix") { options.key_prefix = std::string(129, 'a'); }
  SECTION("no connection") { options.connections = 0; }
  SECTION("no room") { options.max_value_bytes = 1023; }
  CHECK(refused());
}

TEST_CASE("errors of a memcached server are not the caller's") {
  const std::string reply = GENERATE(
      as<std::string>{}, "SERVER_ERROR out of memory storing object\r\n", "CLIENT_ERROR bad\r\n",
      "ERROR\r\n", "NOT_STORED\r\n", "hello\r\n", "\r\n", "VALUE\r\n",
      "VALUE x 0 6\r\nVhello\r\nEND\r\n", "VALUE @ 0\r\n", "VALUE @ 0 x\r\n", "VALUE @ 0 6 7 8\r\n",
      "VALUE @ 0 -1\r\n", "VALUE @ 0 6\r\nVhelloXXEND\r\n", "VALUE @ 0 6\r\nVhello\r\nENDXX",
      "VALUE @ 0 99999999999999999999999\r\n", std::string(100'000, 'V'));
  FakeServer server(always(reply));
  const auto store = store_of(server);
  CHECK(get(*store) == StoreStatus::kUnavailable);
  CHECK(put(*store) == StoreStatus::kUnavailable);
  CHECK(store->erase(store_key(1), test::soon()) == StoreStatus::kUnavailable);
  if (!reply.starts_with("SERVER_ERROR")) check_recovery(server, well, *store);
}

TEST_CASE("an item that the server finds too large is too large") {
  FakeServer server(always("SERVER_ERROR object too large for cache\r\n"));
  const auto store = store_of(server);
  CHECK(put(*store) == StoreStatus::kTooLarge);
  CHECK(put(*store) == StoreStatus::kTooLarge);
  CHECK(server.connections() == 1);
}

TEST_CASE("what is no item of ours is a miss") {
  const std::string reply =
      GENERATE(as<std::string>{}, "END\r\n", "VALUE @ 0 1\r\nx\r\nEND\r\n",
               "VALUE @ 0 6\r\nxhello\r\nEND\r\n", "VALUE @ 0 6\r\nMhello\r\nEND\r\n",
               "VALUE @ 7 6\r\nPhello\r\nEND\r\n");
  FakeServer server(always(reply));
  const auto store = store_of(server);
  CHECK(get(*store) == StoreStatus::kMiss);
  CHECK(get(*store) == StoreStatus::kMiss);
  CHECK(server.connections() == 1);
}

TEST_CASE("an item above the limit is refused by its length") {
  const std::string length = GENERATE(as<std::string>{}, "0", "1048577", "18446744073709551615");
  FakeServer server(always("VALUE @ 0 " + length + "\r\nV"));
  const auto store = store_of(server);
  CHECK(get(*store) == StoreStatus::kMiss);
  check_recovery(server, well, *store);
}

TEST_CASE("a memcached server that refuses, hangs, drips or dies costs the deadline at most") {
  FakeServer server([](Connection& connection) { connection.hang(); });
  auto store = store_of(server);
  SECTION("hangs") {
    CHECK(get(*store, 50ms) == StoreStatus::kUnavailable);
    CHECK(put(*store, 3u << 20, 50ms) == StoreStatus::kUnavailable);
  }
  SECTION("a byte at a time") {
    server.set([](Connection& connection) {
      connection.drip("VALUE " + name_in(connection.read_line()) + " 0 6\r\nVhello\r\nEND\r\n",
                      20ms);
    });
    CHECK(get(*store, 200ms) == StoreStatus::kUnavailable);
  }
  SECTION("dies in the middle") {
    const std::size_t length = GENERATE(0u, 5u, 80u, 85u, 88u, 93u);
    server.set([length](Connection& connection) {
      const std::string name = name_in(connection.read_line());
      connection.send(("VALUE " + name + " 0 6\r\nVhello\r\nEND\r\n").substr(0, length));
    });
    CHECK(get(*store) == StoreStatus::kUnavailable);
    CHECK(put(*store, 3u << 20) == StoreStatus::kUnavailable);
  }
  check_recovery(server, well, *store);
  server.set(well);
  MemcachedStoreOptions nobody;
  nobody.servers = {"127.0.0.1:" + std::to_string(test::free_port())};
  CHECK(get(*make_memcached_store(nobody)) == StoreStatus::kUnavailable);
}

TEST_CASE("keys are spread over the servers, and a dead one has its own keys only") {
  std::vector<store::Endpoint> servers;
  for (std::uint16_t i = 0; i < 4; ++i) servers.push_back({"10.0.0." + std::to_string(i), 11211});
  const store::MemcachedRing four(servers);
  servers.pop_back();
  const store::MemcachedRing three(servers);
  std::map<std::size_t, unsigned> keys;
  unsigned moved = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string name = "incipit:" + std::to_string(i);
    const std::size_t server = four.server_of(name);
    ++keys[server];
    if (server < 3 && three.server_of(name) != server) ++moved;
  }
  REQUIRE(keys.size() == 4);
  for (const auto& [server, count] : keys) {
    INFO("server " << server);
    CHECK(count > 500);
  }
  // A server less moves its own keys and no others.
  CHECK(moved == 0);
}

TEST_CASE("a dead server has its own keys only") {
  FakeServer first(well);
  MemcachedStoreOptions options;
  options.servers = {address_of(first), "127.0.0.1:" + std::to_string(test::free_port())};
  const auto store = make_memcached_store(options);
  unsigned hits = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    StoreBuffer value;
    hits += store->get(store_key(i), test::soon(), value) == StoreStatus::kOk ? 1u : 0u;
  }
  CHECK(hits > 15);
  CHECK(hits < 85);
}

}  // namespace
}  // namespace incipit
