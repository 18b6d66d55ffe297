// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "directory_fixture.h"
#include "fake_store.h"
#include "store_values.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

// What else may lie in a directory store's folder, and what may happen to the folder.

namespace incipit::test {
namespace {

namespace fs = std::filesystem;
using store::DirectoryStore;

/// A folder with one value whose file is then replaced.
struct OneValue {
  TemporaryDirectory parent;
  fs::path folder = parent.path() / "store";
  DirectoryStore store{{.directory = folder, .max_value_bytes = kMega}};
  StoreKey key = store_key(1);
  fs::path file = file_of(folder, key);

  OneValue() {
    write(store, key, pattern(kLarge, 1));
    fs::remove(file);
  }
  /// The thing is a miss, a new value replaces it, and a pass over the folder survives it.
  void check_miss() {
    CHECK(read(store, key).status == StoreStatus::kMiss);
    DirectoryStore another({.directory = folder});
    CHECK(write(store, key, pattern(kLarge + 1, 2)) == StoreStatus::kOk);
    CHECK(read(store, key).holds(pattern(kLarge + 1, 2)));
  }
};

TEST_CASE("a link in a value's place is a miss, wherever it leads") {
  OneValue one;
  const fs::path outside = one.parent.path() / "outside";
  std::ofstream(outside) << "a secret of some length";
  const std::string target = GENERATE("outside", "store", "nowhere");
  fs::create_symlink(one.parent.path() / target, one.file);
  one.check_miss();
  CHECK(fs::file_size(outside) == 23);
}

TEST_CASE("a link in a shard's place is not followed") {
  OneValue one;
  const fs::path outside = one.parent.path() / "outside";
  fs::create_directory(outside);
  fs::remove(one.file.parent_path());
  fs::create_directory_symlink(outside, one.file.parent_path());
  std::ofstream(outside / one.file.filename()) << "something that is not a value";
  CHECK(read(one.store, one.key).status == StoreStatus::kMiss);
  CHECK(write(one.store, one.key, pattern(kLarge + 1, 2)) == StoreStatus::kUnavailable);
  CHECK(one.store.erase(one.key, soon()) == StoreStatus::kOk);
  CHECK(fs::exists(outside / one.file.filename()));
  CHECK(temporary_files(one.folder).empty());
}

TEST_CASE("a FIFO or a folder in a value's place is a miss") {
  OneValue one;
  if (GENERATE(true, false)) {
    REQUIRE(::mkfifo(one.file.c_str(), 0600) == 0);
  } else {
    fs::create_directory(one.file);
  }
  one.check_miss();
}

TEST_CASE("a folder with something in it is left alone in a value's place") {
  OneValue one;
  fs::create_directories(one.file / "inside");
  CHECK(read(one.store, one.key).status == StoreStatus::kMiss);
  CHECK(write(one.store, one.key, pattern(kLarge + 1, 2)) == StoreStatus::kUnavailable);
  CHECK(one.store.erase(one.key, soon()) == StoreStatus::kOk);
  CHECK(fs::exists(one.file / "inside"));
  CHECK(temporary_files(one.folder).empty());
}

TEST_CASE("a huge sparse file is a miss and costs no memory") {
  OneValue one;
  std::ofstream(one.file) << "x";
  fs::resize_file(one.file, std::uintmax_t{1} << 40);
  one.check_miss();
}

TEST_CASE("a file that is shorter than its own end is a miss") {
  OneValue one;
  for (const std::size_t size : {0u, 1u, 15u}) {
    std::ofstream(one.file) << std::string(size, '\0');
    CHECK(read(one.store, one.key).status == StoreStatus::kMiss);
  }
}

TEST_CASE("files that nobody may read are misses") {
  if (::geteuid() == 0) return;  // who may read anything
  OneValue one;
  write(one.store, one.key, pattern(kLarge + 1, 2));
  fs::permissions(one.file, fs::perms::none);
  CHECK(read(one.store, one.key).status == StoreStatus::kMiss);
}

TEST_CASE("other files stay, and any names are survived") {
  const TemporaryDirectory folder;
  std::mt19937_64 random(1);
  std::vector<fs::path> others;
  for (int i = 0; i < 300; ++i) {
    const auto shard = store::shard_name(static_cast<unsigned>(random() % 256));
    const fs::path parent = random() % 4 == 0 ? folder.path() : folder.path() / shard.data();
    std::string name;
    for (std::size_t length = 1 + random() % 80; name.size() < length;) {
      const char byte = static_cast<char>(1 + random() % 255);
      if (byte != '/') name += byte;
    }
    fs::create_directories(parent);
    std::ofstream(parent / name) << "x";
    if (fs::exists(parent / name)) others.push_back(parent / name);
  }
  {
    DirectoryStore store({.directory = folder.path(), .capacity_bytes = 3 * kMega});
    for (std::uint64_t i = 0; i < 60; ++i) {
      write(store, store_key(i), pattern(100'000, i));
      CHECK(store.size_bytes() <= 3 * kMega);
    }
  }
  for (const fs::path& other : others) CHECK(fs::exists(other));
}

TEST_CASE("what a killed writer left is removed after a while, and only that") {
  const TemporaryDirectory folder;
  const DirectoryStoreOptions options = {.directory = folder.path()};
  { DirectoryStore store(options); }
  const fs::path temporary = folder.path() / "temporary";
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::pair<const char*, int> files[] = {
      {"value.old", 700}, {"value.young", 500}, {"value.future", -4000}, {"other", 100000}};
  for (const auto& [name, age] : files) {
    std::ofstream(temporary / name) << "x";
    set_last_use(temporary / name, now - std::chrono::seconds(age));
  }
  fs::create_directory(temporary / "value.folder");
  { DirectoryStore store(options); }
  CHECK_FALSE(fs::exists(temporary / "value.old"));
  CHECK_FALSE(fs::exists(temporary / "value.future"));
  CHECK(fs::exists(temporary / "value.young"));
  CHECK(fs::exists(temporary / "other"));
  CHECK(fs::exists(temporary / "value.folder"));
}

TEST_CASE("a removed folder is unavailable until it is back") {
  const TemporaryDirectory parent;
  const fs::path folder = parent.path() / "store";
  DirectoryStore store({.directory = folder});
  write(store, store_key(1), pattern(kLarge, 1));
  fs::rename(folder, parent.path() / "away");
  fs::remove_all(parent.path() / "away");
  CHECK(read(store, store_key(1)).status == StoreStatus::kUnavailable);
  CHECK(write(store, store_key(1), pattern(kLarge, 1)) == StoreStatus::kUnavailable);
  CHECK(store.erase(store_key(1), soon()) == StoreStatus::kUnavailable);
  CHECK(store.size_bytes() == 0);
  CHECK_FALSE(fs::exists(folder));

  fs::create_directory(folder);
  CHECK(read(store, store_key(1)).status == StoreStatus::kMiss);
  CHECK(write(store, store_key(1), pattern(kLarge, 2)) == StoreStatus::kOk);
  CHECK(read(store, store_key(1)).holds(pattern(kLarge, 2)));
  CHECK(store.erase(store_key(1), soon()) == StoreStatus::kOk);

  // Removed and made again between two calls; and without the folder of temporary files.
  fs::remove_all(folder);
  fs::create_directory(folder);
  CHECK(write(store, store_key(1), pattern(kLarge, 3)) == StoreStatus::kOk);
  CHECK(read(store, store_key(1)).holds(pattern(kLarge, 3)));
  fs::remove_all(folder / "temporary");
  CHECK(write(store, store_key(1), pattern(kLarge, 4)) == StoreStatus::kOk);
  CHECK(read(store, store_key(1)).holds(pattern(kLarge, 4)));
}

}  // namespace
}  // namespace incipit::test
