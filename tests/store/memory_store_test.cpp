// SPDX-License-Identifier: Apache-2.0
#include "store/memory_store.h"

#include <limits>
#include <thread>

#include "fake_store.h"
#include "incipit/error.h"
#include "store_values.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using std::chrono::seconds;
using store::MemoryStore;

constexpr std::uint64_t kMega = 1 << 20;

TEST_CASE("a memory store gives back what it got") {
  const auto store = make_memory_store(16 * kMega);
  CHECK(store->name() == "memory");
  for (const std::size_t size : {0u, 1u, 4095u, 4u << 20}) {
    const StoreKey key = store_key(size);
    CHECK(read(*store, key).status == StoreStatus::kMiss);
    REQUIRE(write(*store, key, pattern(size, 1)) == StoreStatus::kOk);
    CHECK(read(*store, key).holds(pattern(size, 1)));
    REQUIRE(write(*store, key, pattern(size + 7, 2)) == StoreStatus::kOk);
    CHECK(read(*store, key).holds(pattern(size + 7, 2)));
    CHECK(store->erase(key, soon()) == StoreStatus::kOk);
    CHECK(store->erase(key, soon()) == StoreStatus::kOk);
    CHECK(read(*store, key).status == StoreStatus::kMiss);
  }
  CHECK(store->size_bytes() == 0);
}

TEST_CASE("a memory store needs a capacity and refuses what is larger") {
  CHECK_THROWS_AS(make_memory_store(0), Error);
  const auto store = make_memory_store(1000);
  CHECK(write(*store, store_key(1), pattern(100, 1)) == StoreStatus::kOk);
  CHECK(write(*store, store_key(1), pattern(1001, 1)) == StoreStatus::kTooLarge);
  CHECK(write(*store, store_key(1), pattern(1000 - MemoryStore::kOverhead + 1, 1)) ==
        StoreStatus::kTooLarge);
  CHECK(read(*store, store_key(1)).holds(pattern(100, 1)));
  CHECK(write(*store, store_key(1), pattern(1000 - MemoryStore::kOverhead, 1)) == StoreStatus::kOk);
  CHECK(store->size_bytes() == 1000);
}

TEST_CASE("a memory store evicts what is least recently used and keeps its budget") {
  const std::uint64_t one = 100 + MemoryStore::kOverhead;
  MemoryStore store(4 * one);
  for (std::uint64_t i = 0; i < 4; ++i) write(store, store_key(i), pattern(100, i));
  CHECK(store.size_bytes() == 4 * one);
  CHECK(read(store, store_key(0)).holds(pattern(100, 0)));  // used now
  write(store, store_key(1), pattern(100, 9));              // written anew
  write(store, store_key(4), pattern(101, 4));              // one byte more than a place
  CHECK(store.size_bytes() == 3 * one + 1);
  CHECK(read(store, store_key(2)).status == StoreStatus::kMiss);
  CHECK(read(store, store_key(3)).status == StoreStatus::kMiss);
  CHECK(read(store, store_key(0)).holds(pattern(100, 0)));
  CHECK(read(store, store_key(1)).holds(pattern(100, 9)));
  CHECK(read(store, store_key(4)).holds(pattern(101, 4)));
}

TEST_CASE("values of a memory store expire") {
  std::chrono::steady_clock::time_point time{};
  MemoryStore store(kMega, [&] { return time; });
  write(store, store_key(1), pattern(10, 1), seconds(10));
  write(store, store_key(2), pattern(10, 2), seconds(0));
  write(store, store_key(3), pattern(10, 3), seconds::max());
  time += seconds(9);
  CHECK(read(store, store_key(1)).holds(pattern(10, 1)));
  time += seconds(1);
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
  CHECK(store.size_bytes() == 2 * (10 + MemoryStore::kOverhead));
  time += std::chrono::hours(24 * 365 * 100);
  CHECK(read(store, store_key(2)).holds(pattern(10, 2)));
  CHECK(read(store, store_key(3)).holds(pattern(10, 3)));
  // A lifetime that is over before it starts.
  CHECK(write(store, store_key(2), pattern(10, 2), seconds(-1)) == StoreStatus::kOk);
  CHECK(read(store, store_key(2)).status == StoreStatus::kMiss);
}

TEST_CASE("threads share a memory store") {
  MemoryStore store(20000);
  std::atomic<int> damaged = 0, hits = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 3000; ++i) {
        const std::uint64_t number = random() % 30;
        if (random() % 3 == 0) {
          write(store, store_key(number), pattern(random() % 2000, number));
        } else if (random() % 20 == 0) {
          store.erase(store_key(number), soon());
        } else if (const Read got = read(store, store_key(number)); got.is_hit()) {
          ++hits;
          if (!got.holds(pattern(got.bytes.size(), number))) ++damaged;
        }
        if (store.size_bytes() > 20000) ++damaged;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(damaged == 0);
  CHECK(hits > 0);
}

}  // namespace
}  // namespace incipit::test
