// SPDX-License-Identifier: Apache-2.0
// A Redis Cluster whose nodes misbehave.
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "incipit/store.h"
#include "store/fake_server.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "store/timed_calls.h"
#include "support/catch.h"

namespace incipit {
namespace {

using namespace std::chrono_literals;
using test::FakeServer;
using test::get;
using test::redis_script;
using test::redis_string;
using test::store_key;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

std::string range(unsigned first, unsigned last, const std::string& host, std::uint16_t port) {
  return "*3\r\n:" + std::to_string(first) + "\r\n:" + std::to_string(last) + "\r\n*2\r\n" +
         redis_string(host) + ":" + std::to_string(port) + "\r\n";
}

// All slots are at `port` of the node that is asked.
std::string map_to(std::uint16_t port) { return "*1\r\n" + range(0, 16383, "", port); }

std::string value() { return redis_string("Vhello"); }

std::shared_ptr<Store> store_of(std::uint16_t port) {
  RedisStoreOptions options;
  options.port = port;
  options.cluster = true;
  options.max_value_bytes = 1u << 20;
  return make_redis_store(options);
}

TEST_CASE("a cluster is asked for its map once") {
  std::atomic<unsigned> maps = 0;
  FakeServer node(redis_script({}));
  node.set(redis_script([&](const Words& words) {
    if (words[0] != "CLUSTER") return value();
    ++maps;
    return map_to(node.port());
  }));
  const auto store = store_of(node.port());
  CHECK(store->name() == "redis_cluster");
  for (std::uint64_t i = 0; i < 20; ++i) CHECK(get(*store, 5s, i) == StoreStatus::kOk);
  CHECK(maps == 1);
}

TEST_CASE("a map that makes no sense leaves the cluster unavailable") {
  std::atomic<bool> well = false;
  const std::string map = GENERATE(
      as<std::string>{}, "*0\r\n", "*-1\r\n", "$5\r\nhello\r\n",
      "-ERR This instance has cluster support disabled\r\n", "*1\r\n:1\r\n",
      "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$0\r\n\r\n:1\r\n", "garbage\r\n", "*1000000000\r\n");
  FakeServer node(redis_script({}));
  node.set(redis_script([&](const Words& words) {
    if (words[0] != "CLUSTER") return value();
    return well ? map_to(node.port()) : map;
  }));
  const auto store = store_of(node.port());
  CHECK(get(*store) == StoreStatus::kUnavailable);
  well = true;
  CHECK(get(*store) == StoreStatus::kOk);
}

TEST_CASE("slots that nobody serves are unavailable, others are not") {
  FakeServer node(redis_script({}));
  node.set(redis_script([&](const Words& words) {
    return words[0] == "CLUSTER" ? "*1\r\n" + range(0, 8191, "", node.port()) : value();
  }));
  const auto store = store_of(node.port());
  unsigned hits = 0;
  for (std::uint64_t i = 0; i < 64; ++i) hits += get(*store, 5s, i) == StoreStatus::kOk ? 1u : 0u;
  CHECK(hits > 16);
  CHECK(hits < 48);
}

TEST_CASE("MOVED is followed, and the map asked anew") {
  std::atomic<unsigned> moved = 0;
  FakeServer second(redis_script([](const Words&) { return value(); }));
  const std::uint16_t there = second.port();
  second.set(redis_script(
      [there](const Words& words) { return words[0] == "CLUSTER" ? map_to(there) : value(); }));
  std::atomic<bool> knows = false;
  FakeServer first(redis_script({}));
  const std::uint16_t here = first.port();
  first.set(redis_script([&, here, there](const Words& words) {
    if (words[0] == "CLUSTER") return map_to(knows ? there : here);
    ++moved;
    knows = true;
    return "-MOVED 1 127.0.0.1:" + std::to_string(there) + "\r\n";
  }));
  const auto store = store_of(here);
  CHECK(get(*store) == StoreStatus::kOk);
  CHECK(get(*store) == StoreStatus::kOk);
  CHECK(moved == 1);  // The slot's owner is known at once, whatever the map says.
  std::this_thread::sleep_for(600ms);
  for (std::uint64_t i = 0; i < 10; ++i) CHECK(get(*store, 5s, i) == StoreStatus::kOk);
  CHECK(moved <= 2);
}

TEST_CASE("MOVED in a circle ends") {
  FakeServer second(redis_script({}));
  FakeServer first(redis_script({}));
  const auto script = [&](std::uint16_t here, std::uint16_t there) {
    return redis_script([here, there](const Words& words) {
      return words[0] == "CLUSTER" ? map_to(here)
                                   : "-MOVED 1 127.0.0.1:" + std::to_string(there) + "\r\n";
    });
  };
  first.set(script(first.port(), second.port()));
  second.set(script(second.port(), first.port()));
  const auto store = store_of(first.port());
  CHECK(get(*store) == StoreStatus::kUnavailable);
}

TEST_CASE("MOVED to nowhere is unavailable") {
  const std::string where =
      GENERATE(as<std::string>{}, ":1", "no.such.host.invalid:1", "127.0.0.1:0", "x", "");
  FakeServer node(redis_script({}));
  node.set(redis_script([&](const Words& words) {
    return words[0] == "CLUSTER" ? map_to(node.port()) : "-MOVED 1 " + where + "\r\n";
  }));
  CHECK(get(*store_of(node.port())) == StoreStatus::kUnavailable);
}

TEST_CASE("ASK is followed for one request only") {
  std::atomic<unsigned> asked = 0, unasked = 0;
  FakeServer second([&](FakeServer::Connection& connection) {
    for (bool asking = false; true;) {
      const Words words = connection.read_command();
      if (words.empty()) return;
      if (words[0] == "ASKING") {
        connection.send("+OK\r\n");
      } else {
        ++(asking ? asked : unasked);
        connection.send(value());
      }
      asking = words[0] == "ASKING";
    }
  });
  FakeServer first(redis_script({}));
  first.set(redis_script([&](const Words& words) {
    return words[0] == "CLUSTER" ? map_to(first.port())
                                 : "-ASK 1 127.0.0.1:" + std::to_string(second.port()) + "\r\n";
  }));
  const auto store = store_of(first.port());
  for (int i = 0; i < 3; ++i) CHECK(get(*store) == StoreStatus::kOk);
  CHECK(asked == 3);
  CHECK(unasked == 0);
}

TEST_CASE("a dead node makes its own slots unavailable, until another has them") {
  auto second = std::make_unique<FakeServer>(redis_script([](const Words&) { return value(); }));
  const std::uint16_t there = second->port();
  std::atomic<bool> failed_over = false;
  FakeServer first(redis_script({}));
  const std::uint16_t here = first.port();
  first.set(redis_script([&, here, there](const Words& words) {
    if (words[0] != "CLUSTER") return value();
    return "*2\r\n" + range(0, 8191, "", here) +
           range(8192, 16383, "127.0.0.1", failed_over ? here : there);
  }));
  const auto store = store_of(here);
  const auto hits = [&](std::chrono::milliseconds time) {
    unsigned count = 0;
    for (std::uint64_t i = 0; i < 32; ++i) {
      count += get(*store, time, i) == StoreStatus::kOk ? 1u : 0u;
    }
    return count;
  };
  CHECK(hits(5s) == 32);

  SECTION("it is gone") { second.reset(); }
  SECTION("it hangs") {
    second.reset();
    second = std::make_unique<FakeServer>(
        [](FakeServer::Connection& connection) { connection.hang(); }, there);
  }
  const unsigned without = hits(300ms);
  CHECK(without > 6);
  CHECK(without < 26);
  failed_over = true;
  // Who fails asks for the map, but not more often than every half second.
  const auto limit = Clock::now() + 60s;
  while (hits(1s) < 32 && Clock::now() < limit) std::this_thread::sleep_for(100ms);
  CHECK(Clock::now() < limit);
}

TEST_CASE("a node that hangs costs its slots the deadline once in a while") {
  FakeServer second([](FakeServer::Connection& connection) { connection.hang(); });
  FakeServer first(redis_script({}));
  first.set(redis_script([&](const Words& words) {
    return words[0] == "CLUSTER"
               ? "*2\r\n" + range(0, 8191, "", first.port()) + range(8192, 16383, "", second.port())
               : value();
  }));
  const auto store = store_of(first.port());
  const auto start = Clock::now();
  unsigned hits = 0;
  for (std::uint64_t i = 0; i < 64; ++i) {
    hits += get(*store, 300ms, i) == StoreStatus::kOk ? 1u : 0u;
  }
  CHECK(hits > 16);
  CHECK(hits < 48);
  CHECK(Clock::now() - start < 16 * 300ms);
  // It is asked again after a while, and callers without time say nothing about a node.
  second.set(redis_script([](const Words&) { return value(); }));
  std::this_thread::sleep_for(1100ms);
  for (std::uint64_t i = 0; i < 64; ++i) {
    CHECK(get(*store, -1s, i) == StoreStatus::kUnavailable);
    CHECK(get(*store, 5s, i) == StoreStatus::kOk);
  }
}

}  // namespace
}  // namespace incipit
