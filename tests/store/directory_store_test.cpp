// SPDX-License-Identifier: Apache-2.0
#include "store/directory_store.h"

#include <unistd.h>

#include <fstream>
#include <thread>

#include "directory_fixture.h"
#include "fake_store.h"
#include "incipit/error.h"
#include "store_values.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace incipit::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using store::DirectorySeams;
using store::DirectoryStore;

/// A wall clock that stands still until it is told.
struct FakeWall {
  std::chrono::system_clock::time_point time = std::chrono::system_clock::now();
  DirectorySeams seams() {
    return {.clock = [this] { return time; }};
  }
};

unsigned mode_of(const fs::path& path) {
  struct stat status = {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

TEST_CASE("a directory store gives back what it got, also after a restart") {
  const TemporaryDirectory folder;
  const bool sync = GENERATE(false, true);
  const DirectoryStoreOptions options = {.directory = folder.path(), .sync_writes = sync};
  auto store = make_directory_store(options);
  CHECK(store->name() == "directory");
  for (const std::size_t size : {0u, 1u, 440u, 441u, 4095u, 4u << 20}) {
    const StoreKey key = store_key(size);
    CHECK(read(*store, key).status == StoreStatus::kMiss);
    REQUIRE(write(*store, key, pattern(size, 1)) == StoreStatus::kOk);
    CHECK(read(*store, key).holds(pattern(size, 1)));
    store.reset();  // what it has not told would be counted twice
    store = make_directory_store(options);
    CHECK(read(*store, key).holds(pattern(size, 1)));
    REQUIRE(write(*store, key, pattern(size + 7, 2)) == StoreStatus::kOk);
    CHECK(read(*store, key).holds(pattern(size + 7, 2)));
  }
  CHECK(store->size_bytes() == bytes_on_disk(folder.path()));
  for (const std::size_t size : {0u, 1u, 440u, 441u, 4095u, 4u << 20}) {
    CHECK(store->erase(store_key(size), soon()) == StoreStatus::kOk);
    CHECK(store->erase(store_key(size), soon()) == StoreStatus::kOk);
    CHECK(read(*store, store_key(size)).status == StoreStatus::kMiss);
  }
  CHECK(store->size_bytes() == bytes_on_disk(folder.path()));
  CHECK(temporary_files(folder.path()).empty());
}

TEST_CASE("two stores share a folder") {
  const TemporaryDirectory folder;
  const auto one = make_directory_store({.directory = folder.path()});
  const auto two = make_directory_store({.directory = folder.path()});
  write(*one, store_key(1), pattern(5000, 1));
  CHECK(read(*two, store_key(1)).holds(pattern(5000, 1)));
  write(*two, store_key(1), pattern(kSmall, 2));
  CHECK(read(*one, store_key(1)).holds(pattern(kSmall, 2)));
  one->erase(store_key(1), soon());
  CHECK(read(*two, store_key(1)).status == StoreStatus::kMiss);
}

TEST_CASE("names are digests, and files are for their owner only") {
  const TemporaryDirectory parent;
  const fs::path folder = parent.path() / "a" / "b";
  const auto store = make_directory_store({.directory = folder});
  StoreKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i)
    key.bytes[i] = static_cast<std::byte>(i + 0x9a);
  write(*store, key, pattern(kLarge, 1));
  const fs::path file =
      folder / "9a" / "9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9";
  CHECK(fs::is_regular_file(file));
  CHECK(file == file_of(folder, key));
  CHECK(mode_of(folder) == 0700);
  CHECK(mode_of(folder / "9a") == 0700);
  CHECK(mode_of(folder / "temporary") == 0700);
  CHECK(mode_of(file) == 0600);
  CHECK(store::key_of(0x9a, file.filename().string()) == key);
  CHECK_FALSE(store::key_of(0x9a, file.filename().string() + "0"));
  CHECK_FALSE(store::key_of(0x9a, "9B" + file.filename().string().substr(2)));
  CHECK_FALSE(store::key_of(0x9a, ""));
}

TEST_CASE("a directory store refuses what makes no sense") {
  const TemporaryDirectory folder;
  const auto opens = [](DirectoryStoreOptions options) { make_directory_store(options); };
  CHECK_THROWS_AS(opens({.directory = folder.path(), .capacity_bytes = 0}), Error);
  CHECK_THROWS_AS(opens({.directory = folder.path(), .max_value_bytes = 0}), Error);
  CHECK_THROWS_AS(opens({}), Error);
  std::ofstream(folder.path() / "file") << "x";
  CHECK_THROWS_AS(opens({.directory = folder.path() / "file"}), Error);
  CHECK_THROWS_AS(opens({.directory = folder.path() / "file" / "below"}), Error);
}

TEST_CASE("values above a limit are refused and the old one stays") {
  const TemporaryDirectory folder;
  const auto store = make_directory_store(
      {.directory = folder.path(), .capacity_bytes = kMega, .max_value_bytes = kMega});
  write(*store, store_key(1), pattern(1000, 1));
  CHECK(write(*store, store_key(1), pattern(kMega + 1, 1)) == StoreStatus::kTooLarge);
  CHECK(write(*store, store_key(1), pattern(kMega, 1)) == StoreStatus::kTooLarge);
  CHECK(read(*store, store_key(1)).holds(pattern(1000, 1)));
  // Somebody else's limit was higher.
  const auto small = make_directory_store({.directory = folder.path(), .max_value_bytes = 999});
  CHECK(read(*small, store_key(1)).status == StoreStatus::kMiss);
}

TEST_CASE("a call whose deadline has passed leaves the store as it was") {
  const TemporaryDirectory folder;
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge);
  const auto store = make_directory_store({.directory = folder.path()});
  write(*store, store_key(1), pattern(size, 1));
  const Store::Deadline past = std::chrono::steady_clock::now() - seconds(1);
  StoreBuffer buffer;
  CHECK(store->get(store_key(1), past, buffer) == StoreStatus::kUnavailable);
  CHECK(store->put(store_key(1), pattern(size + 1, 2), seconds(0), past) ==
        StoreStatus::kUnavailable);
  CHECK(read(*store, store_key(1)).holds(pattern(size, 1)));
  CHECK(temporary_files(folder.path()).empty());
  CHECK(store->size_bytes() == bytes_on_disk(folder.path()));
}

TEST_CASE("values of a directory store expire, and their files go when they are asked for") {
  const TemporaryDirectory folder;
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge);
  FakeWall wall;
  DirectoryStore store({.directory = folder.path()}, wall.seams());
  write(store, store_key(1), pattern(size, 1), seconds(10));
  write(store, store_key(2), pattern(size, 2));
  wall.time += seconds(8);
  CHECK(read(store, store_key(1)).holds(pattern(size, 1)));
  wall.time += seconds(2);
  CHECK(fs::exists(file_of(folder.path(), store_key(1))) == (size == kLarge));
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
  CHECK_FALSE(fs::exists(file_of(folder.path(), store_key(1))));
  CHECK(read(store, store_key(2)).holds(pattern(size, 2)));
  CHECK(store.size_bytes() == bytes_on_disk(folder.path()));
  // A lifetime that is over before it starts.
  CHECK(write(store, store_key(2), pattern(size, 2), seconds(-1)) == StoreStatus::kOk);
  CHECK(read(store, store_key(2)).status == StoreStatus::kMiss);
}

TEST_CASE("a clock that jumps by a year ends limited lives and harms nothing else") {
  const TemporaryDirectory folder;
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge);
  FakeWall wall;
  DirectoryStore store({.directory = folder.path()}, wall.seams());
  const auto year = std::chrono::hours(365 * 24);
  const auto jump = GENERATE(1, -1) * year;
  write(store, store_key(1), pattern(size, 1), seconds(3600));
  write(store, store_key(2), pattern(size, 2));
  wall.time += jump;
  CHECK(read(store, store_key(2)).holds(pattern(size, 2)));
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
  write(store, store_key(3), pattern(size, 3), seconds(3600));
  CHECK(read(store, store_key(3)).holds(pattern(size, 3)));
  wall.time -= jump;
  CHECK(read(store, store_key(3)).status == StoreStatus::kMiss);
  CHECK(read(store, store_key(2)).holds(pattern(size, 2)));
  // A small step back is no jump, and equal times are none either.
  write(store, store_key(4), pattern(size, 4), seconds(3600));
  wall.time -= seconds(30);
  CHECK(read(store, store_key(4)).holds(pattern(size, 4)));
}

TEST_CASE("a life that is too long is cut, and a file that claims one has expired") {
  const TemporaryDirectory folder;
  FakeWall wall;
  DirectoryStore store({.directory = folder.path()}, wall.seams());
  write(store, store_key(1), pattern(kLarge, 1), seconds::max());
  wall.time += store::kLongestLife - seconds(2);
  CHECK(read(store, store_key(1)).holds(pattern(kLarge, 1)));
  wall.time += seconds(2);
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);

  const auto time = static_cast<std::uint64_t>(
      std::chrono::duration_cast<seconds>(wall.time.time_since_epoch()).count());
  const auto longest = static_cast<std::uint64_t>(store::kLongestLife.count());
  const auto is_hit_with = [&](std::uint64_t created, std::uint64_t expires) {
    write(store, store_key(1), pattern(kLarge, 1));
    std::fstream file(file_of(folder.path(), store_key(1)),
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kLarge);
    file.write(reinterpret_cast<const char*>(&created), sizeof created);
    file.write(reinterpret_cast<const char*>(&expires), sizeof expires);
    file.close();
    return read(store, store_key(1)).is_hit();
  };
  CHECK(is_hit_with(time, time + longest));
  CHECK_FALSE(is_hit_with(time, time + longest + 1));
  CHECK_FALSE(is_hit_with(time - 1000, time));
  CHECK_FALSE(is_hit_with(time + 1000, time + 2000));
  CHECK_FALSE(is_hit_with(time + 50, time + 20));
  CHECK_FALSE(is_hit_with(0, ~std::uint64_t{0}));
  CHECK(is_hit_with(~std::uint64_t{0}, 0));  // lives until evicted
}

TEST_CASE("reading renews the time of last use, at most once a minute") {
  const TemporaryDirectory folder;
  FakeWall wall;
  DirectoryStore store({.directory = folder.path()}, wall.seams());
  write(store, store_key(1), pattern(kLarge, 1));
  const fs::path file = file_of(folder.path(), store_key(1));
  const auto last_use = [&] {
    struct stat status = {};
    REQUIRE(::stat(file.c_str(), &status) == 0);
    return seconds(status.st_mtim.tv_sec);
  };
  const auto time = [&] {
    return std::chrono::duration_cast<seconds>(wall.time.time_since_epoch());
  };
  for (const int age : {59, 60, 1000, -59, -61}) {
    set_last_use(file, time() - seconds(age));
    CHECK(read(store, store_key(1)).is_hit());
    CHECK(last_use() == (age == 59 || age == -59 ? time() - seconds(age) : time()));
  }
}

TEST_CASE("a directory store evicts what was not used for longest and keeps its budget") {
  const TemporaryDirectory folder;
  const std::uint64_t capacity = 4 * kMega;
  DirectoryStore store({.directory = folder.path(), .capacity_bytes = capacity});
  const auto day = [](int days) {
    return std::chrono::duration_cast<seconds>(
               std::chrono::system_clock::now().time_since_epoch()) -
           std::chrono::hours(24 * days);
  };
  // 40 values of 64 KiB, the first ones used last.
  const std::size_t size = 60 << 10;
  for (int i = 0; i < 40; ++i) {
    write(store, store_key(static_cast<std::uint64_t>(i)), pattern(size, 1));
    set_last_use(file_of(folder.path(), store_key(static_cast<std::uint64_t>(i))), day(i + 1));
  }
  CHECK(read(store, store_key(39)).is_hit());  // used now
  for (std::uint64_t i = 100; i < 140; ++i) {
    CHECK(write(store, store_key(i), pattern(size, 2)) == StoreStatus::kOk);
    CHECK(store.size_bytes() <= capacity);
    CHECK(bytes_on_disk(folder.path()) <= capacity);
  }
  CHECK(read(store, store_key(39)).is_hit());
  CHECK(read(store, store_key(38)).status == StoreStatus::kMiss);
  // What is left of the old ones are the most recently used of them.
  int left = 0;
  while (left < 38 && read(store, store_key(static_cast<std::uint64_t>(left))).is_hit()) ++left;
  CHECK(left > 0);
  for (int i = left; i < 39; ++i) {
    CHECK(read(store, store_key(static_cast<std::uint64_t>(i))).status == StoreStatus::kMiss);
  }
  CHECK(store.size_bytes() > capacity / 2);
}

TEST_CASE("budget and use survive a restart, and what was deleted by hand is noticed") {
  const TemporaryDirectory folder;
  const DirectoryStoreOptions options = {.directory = folder.path(), .capacity_bytes = 4 * kMega};
  {
    DirectoryStore store(options);
    for (std::uint64_t i = 0; i < 100; ++i) write(store, store_key(i), pattern(20000, i));
  }
  {
    DirectoryStore store(options);
    CHECK(store.size_bytes() == bytes_on_disk(folder.path()));
    for (std::uint64_t i = 0; i < 100; i += 2) fs::remove(file_of(folder.path(), store_key(i)));
  }
  DirectoryStore store(options);
  CHECK(store.size_bytes() == bytes_on_disk(folder.path()));
  // The number in the file is damaged.
  using namespace std::string_literals;
  for (const std::string& damage : {""s, "x"s, std::string(8, '\xff'), "\0\0\0\0\0\0\0\x7f"s}) {
    std::ofstream(folder.path() / "usage", std::ios::binary) << damage;
    CHECK(DirectoryStore(options).size_bytes() == bytes_on_disk(folder.path()));
  }
}

TEST_CASE("a cache of small and large values keeps its budget") {
  const TemporaryDirectory folder;
  const std::uint64_t capacity = 6 * kMega;
  DirectoryStore store({.directory = folder.path(), .capacity_bytes = capacity});
  for (std::uint64_t i = 0; i < 3000; ++i) {
    REQUIRE(write(store, store_key(i), pattern(kSmall, i)) == StoreStatus::kOk);
    if (i % 4 == 0) REQUIRE(write(store, store_key(i), pattern(kLarge, i)) == StoreStatus::kOk);
    if (i % 500 == 0) REQUIRE(write(store, store_key(i), pattern(kMega, i)) == StoreStatus::kOk);
    if (i % 100 == 0) REQUIRE(bytes_on_disk(folder.path()) <= capacity);
  }
  CHECK(bytes_on_disk(folder.path()) <= capacity);
  CHECK(bytes_on_disk(folder.path()) > capacity / 2);
  CHECK(read(store, store_key(2999)).holds(pattern(kSmall, 2999)));
  CHECK(read(store, store_key(2996)).holds(pattern(kLarge, 2996)));
}

TEST_CASE("a value may become small or large") {
  const TemporaryDirectory folder;
  DirectoryStore store({.directory = folder.path()});
  for (int i = 0; i < 3; ++i) {
    write(store, store_key(1), pattern(kSmall, 1));
    CHECK(read(store, store_key(1)).holds(pattern(kSmall, 1)));
    CHECK_FALSE(fs::exists(file_of(folder.path(), store_key(1))));
    write(store, store_key(1), pattern(kLarge, 2));
    CHECK(read(store, store_key(1)).holds(pattern(kLarge, 2)));
  }
  write(store, store_key(2), pattern(kSmall, 2));
  store.erase(store_key(1), soon());
  store.erase(store_key(2), soon());
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
  CHECK(read(store, store_key(2)).status == StoreStatus::kMiss);
}

}  // namespace
}  // namespace incipit::test
