// SPDX-License-Identifier: Apache-2.0
#include <sys/mount.h>

#include <cstring>
#include <fstream>

#include "directory_fixture.h"
#include "failing_calls.h"
#include "fake_store.h"
#include "incipit/error.h"
#include "store_values.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

// Each system call of each operation fails once, in several ways; and each operation is interrupted
// by another one between any two of its system calls.

namespace incipit::test {
namespace {

namespace fs = std::filesystem;
using store::DirectoryStore;
using Fault = FailingCalls::Fault;

/// A folder, a store on it whose calls fail as told, and one whose calls do not.
struct Pair {
  explicit Pair(bool sync = false)
      : failing({.directory = folder.path(), .sync_writes = sync}, {.calls = calls}),
        healthy({.directory = folder.path()}) {}

  TemporaryDirectory folder;
  std::shared_ptr<FailingCalls> calls = std::make_shared<FailingCalls>();
  DirectoryStore failing, healthy;
  const StoreKey key = store_key(1);
};

struct Failure {
  const char* name;
  Fault fault;
  int error;
};
constexpr Failure kFailures[] = {{"EIO", Fault::kError, EIO},
                                 {"ENOSPC", Fault::kError, ENOSPC},
                                 {"EINTR", Fault::kError, EINTR},
                                 {"ENOENT", Fault::kError, ENOENT},
                                 {"short", Fault::kShort, 0}};

/// Calls `run(is_harmless)` with the first, second, ... call failing until none has failed. A call
/// that a signal interrupts and half of a write are no failures.
template <class Run>
void fail_each_call(FailingCalls& calls, const Failure& failure, Run run) {
  calls.fault = failure.fault;
  calls.error = failure.error;
  const bool is_harmless = failure.fault == Fault::kShort || failure.error == EINTR;
  for (std::uint64_t n = 1;; ++n) {
    REQUIRE(n < 200);
    calls.restart(n);
    INFO(failure.name << " at call " << n);
    run(is_harmless);
    const bool is_last = calls.failed.empty();
    calls.restart();
    if (is_last) return;
  }
}

TEST_CASE("a put that fails leaves the old value, the new one or none") {
  const bool sync = GENERATE(false, true);
  const std::size_t old_size = GENERATE(as<std::size_t>{}, 0u, kSmall, kLarge);
  const std::size_t new_size = GENERATE(as<std::size_t>{}, kSmall + 1, kLarge + 1);
  const Failure failure = GENERATE(from_range(std::begin(kFailures), std::end(kFailures)));
  Pair pair(sync);
  const auto old_value = pattern(old_size, 1), new_value = pattern(new_size, 2);
  fail_each_call(*pair.calls, failure, [&](bool is_harmless) {
    pair.healthy.erase(pair.key, soon());
    if (old_size != 0) write(pair.healthy, pair.key, old_value);
    const StoreStatus status = write(pair.failing, pair.key, new_value);
    const Read got = read(pair.healthy, pair.key);
    if (status == StoreStatus::kOk) {
      CHECK(got.holds(new_value));
    } else {
      CHECK(status == StoreStatus::kUnavailable);
      CHECK_FALSE(is_harmless);
      CHECK((got.status == StoreStatus::kMiss || got.holds(old_value) || got.holds(new_value)));
    }
    CHECK(temporary_files(pair.folder.path()).empty());
  });
  CHECK(write(pair.failing, pair.key, new_value) == StoreStatus::kOk);
  CHECK(read(pair.failing, pair.key).holds(new_value));
}

TEST_CASE("a get that fails gives the value or nothing") {
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge, 3u << 20);
  const Failure failure = GENERATE(from_range(std::begin(kFailures), std::end(kFailures)));
  Pair pair;
  const auto value = pattern(size, 1);
  write(pair.healthy, pair.key, value);
  fail_each_call(*pair.calls, failure, [&](bool is_harmless) {
    const Read got = read(pair.failing, pair.key);
    if (got.is_hit() || is_harmless) {
      CHECK(got.holds(value));
    } else {
      CHECK(got.status != StoreStatus::kTooLarge);
    }
  });
  // Where the table of small values was not there, for all that the store could see, it made one.
  if (size != kSmall || failure.error != ENOENT) CHECK(read(pair.failing, pair.key).holds(value));
}

TEST_CASE("an erase that says so has erased") {
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge);
  const Failure failure = GENERATE(from_range(std::begin(kFailures), std::end(kFailures)));
  Pair pair(true);
  fail_each_call(*pair.calls, failure, [&](bool is_harmless) {
    write(pair.healthy, pair.key, pattern(size, 1));
    const StoreStatus status = pair.failing.erase(pair.key, soon());
    if (status == StoreStatus::kOk && (failure.error != ENOENT || pair.calls->failed.empty())) {
      CHECK(read(pair.healthy, pair.key).status == StoreStatus::kMiss);
    }
    if (is_harmless) CHECK(status == StoreStatus::kOk);
  });
}

TEST_CASE("a store whose opening fails says so or works") {
  const Failure failure = GENERATE(from_range(std::begin(kFailures), std::end(kFailures)));
  const TemporaryDirectory folder;
  const auto calls = std::make_shared<FailingCalls>();
  const DirectoryStoreOptions options = {.directory = folder.path() / "store",
                                         .capacity_bytes = 4 * kMega};
  { write(*make_directory_store(options), store_key(1), pattern(kLarge, 1)); }
  calls->fault = failure.fault;
  calls->error = failure.error;
  // All calls for the first shards and the last; in between they are the same.
  int opened = 0;
  for (std::uint64_t n = 1; n < 330; n += n < 30 || n > 260 ? 1 : 23) {
    calls->restart(n);
    try {
      DirectoryStore store(options, {.calls = calls});
      calls->restart();
      ++opened;
      CHECK(read(store, store_key(1)).holds(pattern(kLarge, 1)));
      // Without the folder for it nothing can be written.
      if (n > 4) CHECK(write(store, store_key(2), pattern(kLarge, 2)) == StoreStatus::kOk);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
    }
  }
  CHECK(opened > 50);
}

TEST_CASE("a sweep that fails keeps the budget all the same") {
  const TemporaryDirectory folder;
  const auto calls = std::make_shared<FailingCalls>();
  DirectoryStore store({.directory = folder.path(), .capacity_bytes = 3 * kMega}, {.calls = calls});
  std::uint64_t random = 1;
  int stored = 0;
  calls->also = [&](std::string_view) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % 50 == 0 ? EIO : 0;
  };
  for (std::uint64_t i = 0; i < 300; ++i) {
    if (write(store, store_key(i), pattern(50'000, i)) == StoreStatus::kOk) ++stored;
    if (i % 10 == 0) REQUIRE(bytes_on_disk(folder.path()) <= 3 * kMega);
  }
  CHECK(stored > 150);
  calls->also = {};
  CHECK(write(store, store_key(1000), pattern(50'000, 1)) == StoreStatus::kOk);
  CHECK(read(store, store_key(1000)).holds(pattern(50'000, 1)));
}

/// Calls `run(n)` for n = 1, 2, ...: it runs an operation, between whose calls n - 1 and n `other`
/// runs once, until the operation ends before that.
template <class Other, class Run>
void interrupt_each_call(FailingCalls& calls, Other other, Run run) {
  bool interrupted = true;
  for (std::uint64_t n = 1; interrupted; ++n) {
    REQUIRE(n < 200);
    interrupted = false;
    calls.restart();
    calls.also = [&](std::string_view) {
      if (calls.calls == n) {
        interrupted = true;
        other();
      }
      return 0;
    };
    INFO("interrupted before call " << n);
    run();
    calls.also = {};
  }
}

TEST_CASE("two writers of one key never make a mixture") {
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge, 2u << 20);
  const std::size_t other_size = GENERATE(as<std::size_t>{}, kSmall, kLarge + 1);
  Pair pair;
  const auto one = pattern(size, 1), two = pattern(other_size, 2);
  const auto other = [&] {
    // It cannot wait for the lock of the one that it interrupts.
    const auto brief = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    pair.healthy.put(pair.key, two, {}, brief);
    const Read got = read(pair.healthy, pair.key);
    CHECK((got.status == StoreStatus::kMiss || got.holds(one) || got.holds(two)));
  };
  interrupt_each_call(*pair.calls, other, [&] {
    CHECK(write(pair.failing, pair.key, one) == StoreStatus::kOk);
    const Read got = read(pair.healthy, pair.key);
    // Where one of them is small and the other is not, each may remove the other's.
    const bool may_miss = (size == kSmall) != (other_size == kSmall);
    CHECK((got.holds(one) || got.holds(two) || (may_miss && !got.is_hit())));
    CHECK(temporary_files(pair.folder.path()).empty());
  });
}

TEST_CASE("a reader sees the old value, the new one or none, whatever happens meanwhile") {
  const std::size_t size = GENERATE(as<std::size_t>{}, kSmall, kLarge, 3u << 20);
  Pair pair;
  const auto one = pattern(size, 1), two = pattern(size / 2, 2);
  const fs::path file = file_of(pair.folder.path(), pair.key);
  const int what = GENERATE(0, 1, 2, 3);
  const auto other = [&] {
    if (what == 0) write(pair.healthy, pair.key, two);
    if (what == 1) pair.healthy.erase(pair.key, soon());
    if (what == 2 && fs::exists(file)) fs::resize_file(file, size / 3);
    if (what == 3 && fs::exists(file)) fs::resize_file(file, 0);
  };
  interrupt_each_call(*pair.calls, other, [&] {
    pair.healthy.erase(pair.key, soon());
    write(pair.healthy, pair.key, one);
    const Read got = read(pair.failing, pair.key);
    // Where a file was cut before it was opened, its front is what it holds; the cache's seal is
    // for that.
    const bool is_cut = what == 2 && got.bytes.size() < size / 3;
    CHECK((!got.is_hit() || got.holds(one) || got.holds(two) || is_cut));
    if (what == 3) CHECK((!got.is_hit() || got.holds(one)));
  });
}

TEST_CASE("a full disk makes room once, and then is unavailable") {
  const TemporaryDirectory folder;
  const auto calls = std::make_shared<FailingCalls>();
  DirectoryStore store({.directory = folder.path()}, {.calls = calls});
  for (std::uint64_t i = 0; i < 20; ++i) write(store, store_key(i), pattern(64 << 10, i));
  int full = 0;  // writes fail until so many files were removed
  calls->also = [&](std::string_view call) {
    if (call == "unlink" && full > 0) --full;
    return call == "write" && full > 0 ? ENOSPC : 0;
  };
  full = 3;  // one of them is the temporary file
  CHECK(write(store, store_key(100), pattern(64 << 10, 100)) == StoreStatus::kOk);
  CHECK(read(store, store_key(100)).holds(pattern(64 << 10, 100)));
  full = 1000;
  CHECK(write(store, store_key(101), pattern(64 << 10, 101)) == StoreStatus::kUnavailable);
  CHECK(write(store, store_key(101), pattern(kSmall, 101)) == StoreStatus::kUnavailable);
  CHECK(read(store, store_key(100)).holds(pattern(64 << 10, 100)));
  CHECK(temporary_files(folder.path()).empty());
  full = 0;
  CHECK(write(store, store_key(101), pattern(64 << 10, 101)) == StoreStatus::kOk);
  CHECK(store.size_bytes() == bytes_on_disk(folder.path()));
}

TEST_CASE("a tiny file system is filled and stays in use") {
  const TemporaryDirectory folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=2m") != 0) {
    WARN("skipped: no right to mount a tmpfs");
    return;
  }
  {
    // It may use far more than there is.
    DirectoryStore store({.directory = folder.path()});
    int stored = 0, found = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const std::size_t size = i % 3 == 0 ? kSmall : 30'000;
      if (write(store, store_key(i), pattern(size, i)) == StoreStatus::kOk) ++stored;
      if (read(store, store_key(i)).holds(pattern(size, i))) ++found;
    }
    CHECK(stored == 300);
    CHECK(found == 300);
    CHECK(temporary_files(folder.path()).empty());
  }
  ::umount2(folder.path().c_str(), MNT_DETACH);
}

TEST_CASE("a read-only folder is read and not written") {
  const TemporaryDirectory folder;
  { write(*make_directory_store({.directory = folder.path()}), store_key(1), pattern(kLarge, 1)); }
  const auto calls = std::make_shared<FailingCalls>();
  bool is_read_only = true;
  calls->also = [&](std::string_view call) {
    const bool writes = call == "write" || call == "rename" || call == "make_directory" ||
                        call == "unlink" || call == "resize" || call == "touch";
    return writes && is_read_only ? EROFS : 0;
  };
  DirectoryStore store({.directory = folder.path()}, {.calls = calls});
  CHECK(read(store, store_key(1)).holds(pattern(kLarge, 1)));
  for (const std::size_t size : {kSmall, kLarge}) {
    CHECK(write(store, store_key(2), pattern(size, 2)) == StoreStatus::kUnavailable);
  }
  CHECK(store.erase(store_key(1), soon()) == StoreStatus::kUnavailable);
  CHECK(read(store, store_key(1)).holds(pattern(kLarge, 1)));
  is_read_only = false;
  CHECK(write(store, store_key(2), pattern(kLarge, 2)) == StoreStatus::kOk);
}

}  // namespace
}  // namespace incipit::test
