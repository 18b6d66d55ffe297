// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <random>
#include <thread>

#include "directory_fixture.h"
#include "fake_store.h"
#include "store_values.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace incipit::test {
namespace {

TEST_CASE("threads share a directory store and its budget") {
  const TemporaryDirectory folder;
  store::DirectoryStore store({.directory = folder.path(), .capacity_bytes = 2 * kMega});
  std::atomic<int> damaged = 0, hits = 0, failed = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 250; ++i) {
        const std::uint64_t number = random() % 30;
        if (random() % 2 == 0) {
          const std::size_t size = random() % 2 == 0 ? random() % 440 : random() % 40'000;
          if (write(store, store_key(number), pattern(size, number)) != StoreStatus::kOk) ++failed;
        } else if (random() % 20 == 0) {
          store.erase(store_key(number), soon());
        } else if (const Read got = read(store, store_key(number)); got.is_hit()) {
          ++hits;
          if (!got.holds(pattern(got.bytes.size(), number))) ++damaged;
        }
        if (store.size_bytes() > 2 * kMega) ++damaged;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(damaged == 0);
  CHECK(failed == 0);
  CHECK(hits > 0);
  CHECK(bytes_on_disk(folder.path()) <= 2 * kMega);
  CHECK(temporary_files(folder.path()).empty());
}

}  // namespace
}  // namespace incipit::test
