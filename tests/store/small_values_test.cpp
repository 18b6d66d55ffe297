// SPDX-License-Identifier: Apache-2.0
#include "store/small_values.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "directory_fixture.h"
#include "fake_store.h"
#include "fuzz/corpus.h"
#include "fuzz/mutations.h"
#include "store_values.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace incipit::test {
namespace {

namespace fs = std::filesystem;
using store::FileCalls;
using store::SmallValues;
using store::Stamp;

constexpr std::int64_t kTime = 1'800'000'000;  // seconds since 1970

/// A table of two sets; keys of one set are easy to find.
struct Table {
  TemporaryDirectory folder;
  fs::path path = folder.path() / "small";
  FileCalls calls;
  std::unique_ptr<SmallValues> values = open();

  std::unique_ptr<SmallValues> open() {
    store::Descriptor file(calls, calls.open(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT));
    if (fs::file_size(path) == 0) calls.resize(file.get(), 2 * SmallValues::kSetBytes);
    return std::make_unique<SmallValues>(calls, std::move(file), 2);
  }
  int put(std::uint64_t number, const std::vector<std::byte>& value, std::int64_t now = kTime,
          std::chrono::seconds life = {}) {
    return values->put(key(number), value, Stamp::of(now, life), false, soon(), is_first);
  }
  Read get(std::uint64_t number, std::int64_t now = kTime) {
    StoreBuffer buffer;
    Read result{values->get(key(number), now, buffer)};
    if (result.is_hit()) result.bytes.assign(buffer.bytes().begin(), buffer.bytes().end());
    return result;
  }
  int erase(std::uint64_t number) { return values->erase(key(number), false, soon()); }

  /// All in the first set.
  static StoreKey key(std::uint64_t number) {
    StoreKey key = store_key(number);
    key.bytes[0] = std::byte{0};
    return key;
  }
  std::string content() const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void set_content(const std::string& bytes) const {
    std::ofstream(path, std::ios::binary) << bytes;
  }

  bool is_first = false;
};

TEST_CASE("a table of small values has a size of its own") {
  CHECK_FALSE(SmallValues::sets_of(0));
  CHECK_FALSE(SmallValues::sets_of(4096));
  CHECK(SmallValues::sets_of(8192) == 2u);
  CHECK_FALSE(SmallValues::sets_of(8193));
  CHECK_FALSE(SmallValues::sets_of(3 * 4096));
  CHECK_FALSE(SmallValues::sets_of(std::uint64_t{1} << 62));
  for (const std::uint64_t capacity : {1ull, 1ull << 20, 5ull << 20, 8ull << 30, ~0ull}) {
    CHECK(SmallValues::sets_of(SmallValues::bytes_for(capacity)));
    if (capacity > kMega / 2) CHECK(SmallValues::bytes_for(capacity) <= capacity / 16);
  }
}

TEST_CASE("small values are given back, by another object too") {
  Table table;
  for (const std::size_t size : {0u, 1u, 150u, 440u}) {
    CHECK(table.put(size, pattern(size, 1)) == 0);
    CHECK(table.get(size).holds(pattern(size, 1)));
  }
  CHECK(table.put(150, pattern(7, 2)) == 0);
  table.values = table.open();
  CHECK(table.get(150).holds(pattern(7, 2)));
  CHECK(table.get(440).holds(pattern(440, 1)));
  CHECK(table.erase(150) == 0);
  CHECK(table.erase(150) == 0);
  CHECK(table.get(150).status == StoreStatus::kMiss);
  CHECK(table.get(440).is_hit());
}

TEST_CASE("the key of zeros is a key") {
  Table table;
  StoreBuffer buffer;
  const StoreKey zeros;
  CHECK(table.values->get(zeros, kTime, buffer) == StoreStatus::kMiss);
  table.put(1, pattern(5, 1));
  CHECK(table.values->erase(zeros, false, soon()) == 0);
  CHECK(table.values->put(zeros, pattern(9, 2), Stamp::of(kTime, {}), false, soon(),
                          table.is_first) == 0);
  CHECK(table.values->get(zeros, kTime, buffer) == StoreStatus::kOk);
  CHECK(table.get(1).is_hit());
  CHECK(table.values->erase(zeros, false, soon()) == 0);
  CHECK(table.values->get(zeros, kTime, buffer) == StoreStatus::kMiss);
}

TEST_CASE("only the first value of a set takes more of the disk") {
  Table table;
  table.put(1, pattern(5, 1));
  CHECK(table.is_first);
  table.put(2, pattern(5, 1));
  CHECK_FALSE(table.is_first);
}

TEST_CASE("a full set loses what is useless, then what was not used for longest") {
  Table table;
  for (std::uint64_t i = 0; i < 8; ++i) {
    table.put(i, pattern(10, i), kTime + 100 * static_cast<std::int64_t>(i),
              std::chrono::seconds(i == 5 ? 300 : 0));
  }
  CHECK(table.get(0, kTime + 700).is_hit());  // used now
  table.put(2, pattern(10, 2), kTime + 700);  // written now
  table.put(100, pattern(10, 100), kTime + 900);
  CHECK(table.get(5, kTime).status == StoreStatus::kMiss);  // its time was over
  table.put(101, pattern(10, 101), kTime + 900);
  CHECK(table.get(1, kTime + 900).status == StoreStatus::kMiss);
  table.put(102, pattern(10, 102), kTime + 900);
  CHECK(table.get(3, kTime + 900).status == StoreStatus::kMiss);
  for (const std::uint64_t i : {0u, 2u, 4u, 6u, 7u, 100u, 101u, 102u}) {
    CHECK(table.get(i, kTime + 900).holds(pattern(10, i)));
  }
}

TEST_CASE("times of use from the future do not keep a value for ever") {
  Table table;
  for (std::uint64_t i = 0; i < 8; ++i) table.put(i, pattern(10, i), kTime + (i == 3 ? 9000 : 0));
  table.put(100, pattern(10, 100), kTime + 1);
  CHECK(table.get(3, kTime + 1).status == StoreStatus::kMiss);
  CHECK(table.get(0, kTime + 1).is_hit());
}

TEST_CASE("small values expire") {
  Table table;
  table.put(1, pattern(10, 1), kTime, std::chrono::seconds(10));
  CHECK(table.get(1, kTime + 9).is_hit());
  CHECK(table.get(1, kTime + 10).status == StoreStatus::kMiss);
  CHECK(table.get(1, kTime - 1000).status == StoreStatus::kMiss);
}

TEST_CASE("no damage of the file is read as a value") {
  Table table;
  const auto value = pattern(300, 1);
  table.put(1, value);
  const std::string whole = table.content();
  REQUIRE(whole.size() == 2 * SmallValues::kSetBytes);
  // The value is in the first slot. The time of use, bytes 8 to 15, is of no consequence.
  std::fstream file(table.path, std::ios::in | std::ios::out | std::ios::binary);
  const auto set_byte = [&](std::size_t place, int byte) {
    file.seekp(static_cast<std::streamoff>(place)).put(static_cast<char>(byte)).flush();
  };
  for (std::size_t bit = 0; bit < SmallValues::kSlotBytes * 8; ++bit) {
    const std::size_t place = bit / 8;
    set_byte(place, whole[place] ^ (1 << bit % 8));
    const Read got = table.get(1, kTime - 59);  // which renews no time of use
    set_byte(place, whole[place]);
    if (place >= 8 && place < 16) {
      REQUIRE(got.holds(value));
    } else {
      REQUIRE(got.status == StoreStatus::kMiss);
    }
  }
  CHECK(table.get(1).holds(value));
  for (std::size_t size = 0; size < SmallValues::kSlotBytes; size += 7) {
    table.set_content(whole.substr(0, size));
    // Behind the value there are only zeros, as behind the end of the file.
    REQUIRE(
        (size < 72 + 300 ? table.get(1).status == StoreStatus::kMiss : table.get(1).holds(value)));
  }
  // A damaged slot is written over, and a shorter file grows again.
  table.set_content(whole.substr(0, 100));
  table.put(1, value);
  CHECK(table.get(1).holds(value));
  // Another key's slot is another key's.
  std::string moved = whole;
  const StoreKey other = Table::key(2);
  std::memcpy(&moved[32], other.bytes.data(), other.bytes.size());
  table.set_content(moved);
  CHECK(table.get(2).status == StoreStatus::kMiss);
}

TEST_CASE("a reader never sees half of a slot that is written at the same time") {
  Table table;
  const std::string one = (table.put(1, pattern(440, 1)), table.content());
  const std::string two = (table.put(1, pattern(440, 2)), table.content());
  for (std::size_t cut = 0; cut < SmallValues::kSlotBytes; cut += 16) {
    table.set_content(two.substr(0, cut) + one.substr(cut));
    const Read got = table.get(1);
    REQUIRE((got.status == StoreStatus::kMiss || got.holds(pattern(440, 1)) ||
             got.holds(pattern(440, 2))));
  }
}

TEST_CASE("a writer waits for another one until its deadline") {
  Table table;
  const auto other = table.open();
  store::Descriptor file(table.calls, table.calls.open(AT_FDCWD, table.path.c_str(), O_RDWR));
  REQUIRE(table.calls.lock(file.get(), LOCK_EX | LOCK_NB) == 0);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  CHECK(table.values->put(Table::key(1), pattern(10, 1), Stamp::of(kTime, {}), false, deadline,
                          table.is_first) == ETIMEDOUT);
  CHECK(table.get(1).status == StoreStatus::kMiss);
  REQUIRE(table.calls.lock(file.get(), LOCK_UN) == 0);
  CHECK(table.put(1, pattern(10, 1)) == 0);
}

TEST_CASE("a table that was removed says so") {
  Table table;
  CHECK_FALSE(table.values->is_removed());
  fs::remove(table.path);
  CHECK(table.values->is_removed());
}

TEST_CASE("a removed or damaged table is made anew, and all stores of the folder notice") {
  const TemporaryDirectory folder;
  store::DirectoryStore one({.directory = folder.path()});
  store::DirectoryStore two({.directory = folder.path()});
  write(one, store_key(1), pattern(kSmall, 1));
  CHECK(read(two, store_key(1)).is_hit());
  fs::remove(folder.path() / "small");
  CHECK(read(two, store_key(1)).status == StoreStatus::kMiss);
  write(one, store_key(1), pattern(kSmall, 2));
  CHECK(read(two, store_key(1)).holds(pattern(kSmall, 2)));

  fs::remove(folder.path() / "small");
  std::ofstream(folder.path() / "small") << "not a table";
  CHECK(read(one, store_key(1)).status == StoreStatus::kMiss);
  write(one, store_key(1), pattern(kSmall, 3));
  CHECK(read(two, store_key(1)).holds(pattern(kSmall, 3)));

  // A folder in its place is left alone: nothing is stored then.
  fs::remove(folder.path() / "small");
  fs::create_directory(folder.path() / "small");
  CHECK(write(one, store_key(1), pattern(kSmall, 4)) == StoreStatus::kUnavailable);
  CHECK(write(one, store_key(1), pattern(kLarge, 4)) == StoreStatus::kUnavailable);
  CHECK(one.erase(store_key(1), soon()) == StoreStatus::kUnavailable);
  CHECK(temporary_files(folder.path()).empty());
}

TEST_CASE("a table of small values survives mutations") {
  fuzz::run_corpus(fuzz::kSmallValues, "small_values");
  fuzz::run_mutations(fuzz::kSmallValues, 3000);
}

}  // namespace
}  // namespace incipit::test
