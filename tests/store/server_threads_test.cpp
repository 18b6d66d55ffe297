// SPDX-License-Identifier: Apache-2.0
// Stores in servers, used by many threads at a time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "incipit/store.h"
#include "store/fake_server.h"
#include "store/fake_store.h"
#include "store/server_pool.h"
#include "store/store_values.h"
#include "support/catch.h"

namespace incipit {
namespace {

using namespace std::chrono_literals;
using test::FakeServer;
using test::pattern;
using test::store_key;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

bool built(bool with, const char* library) {
  if (!with) WARN("skipped: this build has no " << library);
  return with;
}

// What all connections to all servers of a test see.
class Items {
 public:
  void set(const std::string& name, std::string item) {
    const std::lock_guard lock(mutex_);
    items_[name] = std::move(item);
  }
  void erase(const std::string& name) {
    const std::lock_guard lock(mutex_);
    items_.erase(name);
  }
  // Empty: not there.
  std::string get(const std::string& name) {
    const std::lock_guard lock(mutex_);
    const auto found = items_.find(name);
    return found == items_.end() ? std::string() : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> items_;
};

std::string answer_as_redis(Items& items, const Words& words) {
  if (words[0] == "SET") return items.set(words[1], words[2]), "+OK\r\n";
  if (words[0] == "DEL") return items.erase(words[1]), ":1\r\n";
  const std::string item = items.get(words[1]);
  return item.empty() ? "$-1\r\n" : test::redis_string(item);
}

// Closes after some commands, in the middle of a reply too.
FakeServer::Script unreliable_redis(Items& items, std::function<std::string(const Words&)> map) {
  return [&items, map = std::move(map)](FakeServer::Connection& connection) {
    for (int commands = 0; commands < 40; ++commands) {
      const Words words = connection.read_command();
      if (words.empty()) return;
      const std::string reply = words[0] == "CLUSTER" ? map(words) : answer_as_redis(items, words);
      if (!connection.send(commands < 39 ? std::string_view(reply)
                                         : std::string_view(reply).substr(0, reply.size() / 2))) {
        return;
      }
    }
  };
}

FakeServer::Script unreliable_memcached(Items& items) {
  return [&items](FakeServer::Connection& connection) {
    for (int commands = 0; commands < 40; ++commands) {
      const std::string line = connection.read_line();
      if (line.empty()) return;
      const std::string name = line.substr(line.find(' ') + 1);
      if (line.starts_with("set ")) {
        const std::string bytes = connection.read_bytes(std::stoul(line.substr(line.rfind(' '))));
        connection.read_bytes(2);
        items.set(name.substr(0, name.find(' ')), bytes);
        connection.send("STORED\r\n");
      } else if (line.starts_with("get ")) {
        const std::string item = items.get(name);
        if (!item.empty()) {
          connection.send("VALUE " + name + " 0 " + std::to_string(item.size()) + "\r\n" + item +
                          "\r\n");
        }
        connection.send("END\r\n");
      } else {
        items.erase(name);
        connection.send("DELETED\r\n");
      }
    }
  };
}

// Threads that write, read and erase few keys of three sizes, one of them split. A hit is one of
// the values that were written under its key.
void hammer(Store& store) {
  constexpr int kThreads = 8, kRounds = 150;
  constexpr std::array<std::size_t, 3> kSizes = {0, 700, 3000};
  std::atomic<unsigned> wrong = 0, hits = 0, unavailable = 0;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      StoreBuffer value;
      for (unsigned round = 0; round < kRounds; ++round) {
        const unsigned number = (thread * 7 + round) % 6;
        const Store::Deadline deadline = Clock::now() + 30s;
        StoreStatus status;
        if (round % 5 == 0) {
          status =
              store.put(store_key(number), pattern(kSizes[number % 3], round % 2), 0s, deadline);
        } else if (round % 31 == 0) {
          status = store.erase(store_key(number), deadline);
        } else {
          status = store.get(store_key(number), deadline, value);
          if (status == StoreStatus::kOk) {
            ++hits;
            const bool right = std::ranges::any_of(std::array{0u, 1u}, [&](unsigned seed) {
              return std::ranges::equal(value.bytes(), pattern(kSizes[number % 3], seed));
            });
            if (!right) ++wrong;
          }
        }
        if (status == StoreStatus::kUnavailable) ++unavailable;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(hits > kThreads * kRounds / 4);
  CHECK(unavailable < kThreads * kRounds / 4);
}

TEST_CASE("threads share a Redis store") {
  if (!built(INCIPIT_TEST_REDIS, "hiredis")) return;
  Items items;
  FakeServer server(unreliable_redis(items, {}));
  RedisStoreOptions options;
  options.port = server.port();
  options.connections = 3;
  options.max_value_bytes = 1024;
  const auto store = make_redis_store(options);
  hammer(*store);
}

TEST_CASE("threads share a Redis store whose master comes and goes") {
  if (!built(INCIPIT_TEST_REDIS, "hiredis")) return;
  Items items;
  FakeServer replica(unreliable_redis(items, {}));
  FakeServer master([&, count = std::make_shared<std::atomic<int>>()](FakeServer::Connection& c) {
    if (++*count % 3 != 0) unreliable_redis(items, {})(c);
  });
  RedisStoreOptions options;
  options.port = master.port();
  options.replicas = {{"127.0.0.1", replica.port()}};
  options.max_value_bytes = 1024;
  const auto store = make_redis_store(options);
  hammer(*store);
}

TEST_CASE("threads share a Redis Cluster whose slots are on the move") {
  if (!built(INCIPIT_TEST_REDIS, "hiredis")) return;
  Items items;
  FakeServer second(unreliable_redis(items, {}));
  FakeServer first(unreliable_redis(items, {}));
  std::atomic<unsigned> maps = 0;
  const auto map = [&](const Words&) {
    const std::uint16_t port = ++maps % 2 == 0 ? first.port() : second.port();
    return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + std::to_string(port) + "\r\n";
  };
  first.set(unreliable_redis(items, map));
  second.set(unreliable_redis(items, map));
  RedisStoreOptions options;
  options.port = first.port();
  options.cluster = true;
  options.connections = 3;
  options.max_value_bytes = 1024;
  const auto store = make_redis_store(options);
  hammer(*store);
}
TEST_CASE("threads share a memcached store") {
  if (!built(INCIPIT_TEST_MEMCACHED, "libmemcached")) return;
  Items items;
  FakeServer first(unreliable_memcached(items)), second(unreliable_memcached(items));
  MemcachedStoreOptions options;
  options.servers = {"127.0.0.1:" + std::to_string(first.port()),
                     "127.0.0.1:" + std::to_string(second.port())};
  options.connections = 3;
  options.max_value_bytes = 1200;
  const auto store = make_memcached_store(options);
  hammer(*store);
}
TEST_CASE("threads wait for a place in a pool, and no longer than their deadline") {
  FakeServer server([](FakeServer::Connection& connection) {
    for (std::string line; !(line = connection.read_line()).empty();) connection.send("x\r\n");
  });
  store::ServerPool pool({"127.0.0.1", server.port()}, 2);
  std::atomic<int> inside = 0, most = 0, answered = 0, late = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const Store::Deadline deadline = Clock::now() + (i == 0 ? 1ms : 30'000ms);
        const bool good = pool.run(deadline, [&](store::ServerSocket& socket) {
          const int now = ++inside;
          for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
          }
          const std::array<base::Bytes, 1> request = {base::as_bytes("hello\r\n")};
          const bool sent = socket.send(request, deadline) && socket.read_line(deadline) == "x";
          std::this_thread::sleep_for(1ms);
          --inside;
          return sent;
        });
        ++(good ? answered : late);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(most <= 2);
  CHECK(answered >= 7 * 20);
  CHECK(answered + late == 8 * 20);
}

}  // namespace
}  // namespace incipit
