// SPDX-License-Identifier: Apache-2.0
// The Redis store against a real cluster of three nodes; skips where no redis-server is installed.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "incipit/store.h"
#include "store/fake_server.h"
#include "store/fake_store.h"
#include "store/redis_node.h"
#include "store/redis_slots.h"
#include "store/server_process.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit {
namespace {

using namespace std::chrono_literals;
using store::RedisReply;
using test::pattern;
using test::read;
using test::ServerProcess;
using test::store_key;
using test::write;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kKeys = 60;

// Three masters without replicas, each with a third of the slots.
class Cluster {
 public:
  static constexpr std::array<int, 4> kBounds = {0, 5461, 10923, 16384};

  Cluster() {
    for (std::unique_ptr<ServerProcess>& node : nodes_) {
      // The bus' port is given: by default it is 10000 above, where there may be none.
      const std::string bus = std::to_string(test::free_port());
      node = std::make_unique<ServerProcess>(test::redis_server(
          {"--cluster-enabled", "yes", "--cluster-port", bus, "--cluster-node-timeout", "2000",
           "--cluster-require-full-coverage", "no"}));
      bus_.push_back(bus);
    }
    for (std::size_t i = 0; i < 3; ++i) {
      send(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(kBounds[i]),
               std::to_string(kBounds[i + 1] - 1)});
      send(i, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(node(0).port()), bus_[0]});
    }
    const auto until = Clock::now() + 20s;
    while (!std::all_of(kNodes.begin(), kNodes.end(), [this](std::size_t i) { return whole(i); })) {
      if (Clock::now() > until) throw std::runtime_error("the cluster does not come together");
      std::this_thread::sleep_for(20ms);
    }
  }

  ServerProcess& node(std::size_t i) { return *nodes_[i]; }

  RedisStoreOptions options(std::size_t first_node = 0) const {
    RedisStoreOptions options;
    options.port = nodes_[first_node]->port();
    options.cluster = true;
    return options;
  }

  RedisReply send(std::size_t i, std::vector<std::string> words) const {
    store::RedisNode node({"127.0.0.1", nodes_[i]->port()}, RedisStoreOptions());
    store::RedisCommand command(words.size());
    for (const std::string& word : words) command.add(word);
    const RedisReply::Kind kind = words[1] == "INFO" || words[1] == "MYID"
                                      ? RedisReply::Kind::kString
                                      : RedisReply::Kind::kStatus;
    const auto reply = node.call({{}, command, kind}, test::soon());
    if (!reply || reply->kind != kind) throw std::runtime_error("a node refused " + words[1]);
    return *reply;
  }

 private:
  static constexpr std::array<std::size_t, 3> kNodes = {0, 1, 2};

  bool whole(std::size_t i) const {
    const std::string info = send(i, {"CLUSTER", "INFO"}).text;
    return info.find("cluster_slots_ok:16384") != std::string::npos &&
           info.find("cluster_state:ok") != std::string::npos;
  }

  std::array<std::unique_ptr<ServerProcess>, 3> nodes_;
  std::vector<std::string> bus_;
};

TEST_CASE("a Redis Cluster of three nodes") {
  if (!test::installed("redis-server")) return;
  Cluster cluster;
  const auto store = make_redis_store(cluster.options());
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    REQUIRE(write(*store, store_key(i), pattern(1000 * i, i)) == StoreStatus::kOk);
  }
  // Another process that knows another node finds all.
  const auto other = make_redis_store(cluster.options(2));
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    CHECK(read(*other, store_key(i)).holds(pattern(1000 * i, i)));
  }
  CHECK(other->erase(store_key(0), test::soon()) == StoreStatus::kOk);
  CHECK(read(*store, store_key(0)).status == StoreStatus::kMiss);

  SECTION("values whose parts are spread over the nodes") {
    RedisStoreOptions options = cluster.options();
    options.max_value_bytes = 1u << 20;
    const auto splitting = make_redis_store(options);
    REQUIRE(write(*splitting, store_key(100), pattern(8u << 20, 1)) == StoreStatus::kOk);
    CHECK(read(*splitting, store_key(100)).holds(pattern(8u << 20, 1)));
    CHECK(splitting->erase(store_key(100), test::soon()) == StoreStatus::kOk);
    CHECK(read(*splitting, store_key(100)).status == StoreStatus::kMiss);
  }

  SECTION("a node is killed, and comes back") {
    cluster.node(1).kill();
    unsigned hits = 0;
    const auto start = Clock::now();
    for (std::uint64_t i = 1; i < kKeys; ++i) {
      const test::Read found = read(*store, store_key(i));
      hits += found.is_hit() ? 1u : 0u;
      CHECK((found.holds(pattern(1000 * i, i)) || found.status == StoreStatus::kUnavailable));
    }
    CHECK(Clock::now() - start < 5s);
    CHECK(hits > kKeys / 3);
    CHECK(hits < kKeys - 5);
    // Who only knows the dead node learns the map when that is back.
    const auto late = make_redis_store(cluster.options(1));
    CHECK(read(*late, store_key(1)).status == StoreStatus::kUnavailable);
    cluster.node(1).restart();
    const auto until = Clock::now() + 20s;
    const auto all_answer = [&] {
      for (std::uint64_t i = 1; i < kKeys; ++i) {
        if (read(*store, store_key(i)).status == StoreStatus::kUnavailable) return false;
      }
      return true;
    };
    while (!all_answer() && Clock::now() < until) std::this_thread::sleep_for(50ms);
    CHECK(all_answer());
    CHECK(write(*late, store_key(1), pattern(9, 1)) == StoreStatus::kOk);
    CHECK(read(*store, store_key(1)).holds(pattern(9, 1)));
  }

  SECTION("a slot moves") {
    // The slot of the first key that node 0 has, to node 1; its keys are left behind.
    std::uint64_t key = 1;
    std::size_t slot = 0;
    const auto slot_of = [&](std::uint64_t i) {
      std::string name = "incipit:";
      for (const std::byte byte : store_key(i).bytes) {
        constexpr std::string_view digits = "0123456789abcdef";
        name += digits[std::to_integer<unsigned>(byte) >> 4];
        name += digits[std::to_integer<unsigned>(byte) & 15];
      }
      return store::redis_slot(name);
    };
    while ((slot = slot_of(key)) >= 5461) ++key;
    const std::string receiver = cluster.send(1, {"CLUSTER", "MYID"}).text;
    const std::string giver = cluster.send(0, {"CLUSTER", "MYID"}).text;
    const std::string moving = std::to_string(slot);
    cluster.send(1, {"CLUSTER", "SETSLOT", moving, "IMPORTING", giver});
    cluster.send(0, {"CLUSTER", "SETSLOT", moving, "MIGRATING", receiver});
    // While it moves: what is still there is found there, the rest by ASK.
    CHECK(read(*store, store_key(key)).holds(pattern(1000 * key, key)));
    CHECK(store->erase(store_key(key), test::soon()) == StoreStatus::kOk);
    CHECK(write(*store, store_key(key), pattern(7, 7)) == StoreStatus::kOk);
    CHECK(read(*store, store_key(key)).holds(pattern(7, 7)));
    // Moved for good.
    cluster.send(1, {"CLUSTER", "SETSLOT", moving, "NODE", receiver});
    cluster.send(0, {"CLUSTER", "SETSLOT", moving, "NODE", receiver});
    CHECK(read(*store, store_key(key)).holds(pattern(7, 7)));
    CHECK(read(*other, store_key(key)).holds(pattern(7, 7)));
  }
}

}  // namespace
}  // namespace incipit
