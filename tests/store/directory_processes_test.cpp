// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "directory_fixture.h"
#include "fake_store.h"
#include "store_values.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

// Several processes with one folder, and processes that are killed.

namespace incipit::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using store::DirectoryStore;

constexpr std::uint64_t kCapacity = 4 * kMega;
constexpr std::uint64_t kKeys = 100;

/// A value that tells whether it is whole, and whether it is this key's.
std::vector<std::byte> checkable(std::uint64_t number, std::size_t size) {
  return pattern(size, number * 1'000'003 + size);
}

bool is_right(const Read& got, std::uint64_t number) {
  return got.bytes == checkable(number, got.bytes.size());
}

std::size_t random_size(std::mt19937_64& random) {
  return random() % 2 == 0   ? random() % 400
         : random() % 4 == 0 ? random() % 100'000
                             : random() % 5000;
}

/// Runs `body` in a child process, whose exit status is what it returns.
template <class Body>
pid_t in_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 99;
    try {
      status = body();
    } catch (...) {
    }
    ::_exit(status);
  }
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Waits for the children and returns how many of them failed. Stops them all now and then to
/// measure the folder: `most` becomes the most bytes that it had.
int wait_and_measure(std::vector<pid_t> children, const std::filesystem::path& folder,
                     std::uint64_t& most) {
  int failed = 0;
  while (!children.empty()) {
    std::this_thread::sleep_for(milliseconds(5));
    std::vector<pid_t> running;
    for (const pid_t child : children) {
      int status = 0;
      ::kill(child, SIGSTOP);
      ::waitpid(child, &status, WUNTRACED);
      if (WIFSTOPPED(status)) {
        running.push_back(child);
      } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        ++failed;
      }
    }
    most = std::max(most, bytes_on_disk(folder));
    for (const pid_t child : running) ::kill(child, SIGCONT);
    children = running;
  }
  return failed;
}

TEST_CASE("a writer that is killed at any moment costs values at most") {
  const TemporaryDirectory folder;
  const DirectoryStoreOptions options = {.directory = folder.path(), .capacity_bytes = kCapacity};
  std::mt19937_64 random(1);
  int hits = 0;
  for (std::uint64_t kill = 0; kill < 200; ++kill) {
    const pid_t child = in_child([&]() -> int {
      DirectoryStore store(options);
      std::mt19937_64 own(kill);
      for (;;) {
        const std::uint64_t number = own() % kKeys;
        write(store, store_key(number), checkable(number, random_size(own)));
      }
    });
    REQUIRE(child > 0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    ::kill(child, SIGKILL);
    wait_for(child);
    if (kill % 20 != 19) continue;
    DirectoryStore store(options);
    for (std::uint64_t number = 0; number < kKeys; ++number) {
      const Read got = read(store, store_key(number));
      REQUIRE((got.status == StoreStatus::kMiss || (got.is_hit() && is_right(got, number))));
      hits += got.is_hit() ? 1 : 0;
    }
    REQUIRE(bytes_on_disk(folder.path()) <= kCapacity);
  }
  CHECK(hits > 100);
  const DirectoryStore store(options, {.temporary_grace = seconds(0)});
  CHECK(temporary_files(folder.path()).empty());
  CHECK(store.size_bytes() == bytes_on_disk(folder.path()));
}

TEST_CASE("processes share a folder and its budget") {
  const TemporaryDirectory folder;
  const DirectoryStoreOptions options = {.directory = folder.path(), .capacity_bytes = kCapacity};
  const auto end = std::chrono::steady_clock::now() + seconds(2);
  const auto work = [&](std::uint64_t seed) {
    DirectoryStore store(options);
    std::mt19937_64 random(seed);
    int hits = 0, written = 0;
    while (std::chrono::steady_clock::now() < end) {
      const std::uint64_t number = random() % kKeys;
      if (random() % 3 == 0) {
        const auto value = checkable(number, random_size(random));
        if (write(store, store_key(number), value) == StoreStatus::kOk) ++written;
      } else if (random() % 10 == 0) {
        if (store.erase(store_key(number), soon()) != StoreStatus::kOk) return 1;
      } else {
        const Read got = read(store, store_key(number));
        if (got.status != StoreStatus::kMiss && !got.is_hit()) return 2;
        if (got.is_hit() && !is_right(got, number)) return 3;
        hits += got.is_hit() ? 1 : 0;
      }
    }
    return hits > 50 && written > 50 ? 0 : 4;
  };
  std::vector<pid_t> children;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    children.push_back(in_child([&] { return work(seed); }));
  }
  std::uint64_t most = 0;
  CHECK(wait_and_measure(children, folder.path(), most) == 0);
  CHECK(most <= kCapacity);
  CHECK(temporary_files(folder.path()).empty());
  const DirectoryStore store(options);
  CHECK(store.size_bytes() == bytes_on_disk(folder.path()));
}

TEST_CASE("processes that write much more than fits keep the budget together") {
  const TemporaryDirectory folder;
  const DirectoryStoreOptions options = {.directory = folder.path(), .capacity_bytes = kCapacity};
  std::vector<pid_t> children;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    children.push_back(in_child([&, seed] {
      DirectoryStore store(options);
      for (std::uint64_t i = 0; i < 250; ++i) {
        const std::uint64_t number = 1000 * seed + i;
        if (write(store, store_key(number), checkable(number, 30'000)) != StoreStatus::kOk)
          return 1;
      }
      return 0;
    }));
  }
  std::uint64_t most = 0;
  CHECK(wait_and_measure(children, folder.path(), most) == 0);
  CHECK(most <= kCapacity);
  CHECK(bytes_on_disk(folder.path()) > kCapacity / 2);
}

TEST_CASE("a child process may go on with its parent's store") {
  const TemporaryDirectory folder;
  DirectoryStore store({.directory = folder.path()});
  write(store, store_key(1), checkable(1, kLarge));
  const pid_t child = in_child([&] {
    if (!is_right(read(store, store_key(1)), 1)) return 1;
    for (std::uint64_t i = 2; i < 30; ++i) {
      if (write(store, store_key(i), checkable(i, 100 * i)) != StoreStatus::kOk) return 2;
    }
    return 0;
  });
  for (std::uint64_t i = 2; i < 30; ++i) {
    CHECK(write(store, store_key(i), checkable(i, 100 * i + 1)) == StoreStatus::kOk);
  }
  CHECK(wait_for(child) == 0);
  for (std::uint64_t i = 1; i < 30; ++i) CHECK(is_right(read(store, store_key(i)), i));
  CHECK(temporary_files(folder.path()).empty());
}

}  // namespace
}  // namespace incipit::test
