// SPDX-License-Identifier: Apache-2.0
#include "store/directory_store.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace incipit::store {
namespace {

// Between two looks at the deadline. Bytes.
constexpr std::size_t kPiece = 1 << 20;

bool is_late(Store::Deadline deadline) { return std::chrono::steady_clock::now() >= deadline; }

// Not a file of ours, whatever it is: no reason to give the folder up.
bool says_no_value(int error) {
  return error == ENOENT || error == ELOOP || error == ENOTDIR || error == ENXIO ||
         error == ENODEV || error == EACCES || error == EPERM;
}

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

/// Runs a call of Store, which must not throw.
template <class Call>
StoreStatus fenced(Call call) noexcept {
  try {
    return call();
  } catch (...) {  // no memory, no random numbers
    return StoreStatus::kUnavailable;
  }
}

void check_options(const DirectoryStoreOptions& options) {
  if (options.capacity_bytes == 0 || options.max_value_bytes == 0) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "a directory store needs a capacity and a largest value");
  }
}

}  // namespace

DirectoryStore::DirectoryStore(DirectoryStoreOptions options, DirectorySeams seams)
    : options_((check_options(options), std::move(options))),
      seams_({seams.calls ? seams.calls : std::make_shared<FileCalls>(), std::move(seams.clock),
              seams.temporary_grace}),
      high_(options_.capacity_bytes - options_.capacity_bytes / 16),
      low_(options_.capacity_bytes - options_.capacity_bytes / 8),
      limit_(options_.capacity_bytes - options_.capacity_bytes / 32),
      sweep_({options_.capacity_bytes / 16, seams_.temporary_grace, seams_.clock}) {
  const std::filesystem::path& path = options_.directory;
  std::error_code ignored;  // what could not be made cannot be opened
  std::filesystem::create_directories(path.parent_path(), ignored);
  seams_.calls->make_directory(AT_FDCWD, path.c_str());
  folder_ = open_folder();
  if (!folder_) {
    base::throw_error(ErrorCode::kInvalidArgument, "cannot open the directory " + path.string() +
                                                       ": " +
                                                       std::generic_category().message(errno));
  }
  // Whole folders only where nobody knows what is in them.
  constexpr std::uint64_t kFirstSteps = 4096;
  do {
    counting_ = !sweep_.advance(folder_, kFirstSteps, 0);
  } while (counting_ && !folder_->usage().was_known());
}

std::uint64_t DirectoryStore::size_bytes() const noexcept {
  const std::lock_guard lock(folder_mutex_);
  return folder_ ? folder_->usage().total() : 0;
}

DirectoryStore::Folder DirectoryStore::open_folder() const {
  return StoreFolder::open(seams_.calls, options_.directory, options_.capacity_bytes);
}

DirectoryStore::Folder DirectoryStore::folder() {
  const std::lock_guard lock(folder_mutex_);
  if (!folder_) {
    folder_ = open_folder();
    counting_ = true;
  }
  return folder_;
}

// Whether the folder was removed since it was opened; the next call looks at its path again.
bool DirectoryStore::is_gone(const Folder& folder) {
  if (!folder->is_removed()) return false;
  const std::lock_guard lock(folder_mutex_);
  if (folder_ == folder) folder_ = nullptr;
  return true;
}

std::int64_t DirectoryStore::wall_seconds() const {
  return std::chrono::duration_cast<std::chrono::seconds>(now(seams_.clock).time_since_epoch())
      .count();
}

StoreStatus DirectoryStore::get(const StoreKey& key, Deadline deadline, StoreBuffer& value) {
  return fenced([&] {
    const ValueName name = value_name(key);
    for (;;) {
      const Folder open = folder();
      if (!open || is_late(deadline)) return StoreStatus::kUnavailable;
      if (const auto small = open->small_values()) {
        const StoreStatus status = small->get(key, wall_seconds(), value);
        if (status != StoreStatus::kMiss) return status;
      }
      const Descriptor shard = open->open_folder(name.shard.data());
      if (shard) return read_file(*open, shard.get(), name.file.data(), deadline, value);
      if (!says_no_value(errno)) return StoreStatus::kUnavailable;
      if (!is_gone(open)) return StoreStatus::kMiss;
    }
  });
}

StoreStatus DirectoryStore::read_file(StoreFolder& folder, int shard, const char* name,
                                      Deadline deadline, StoreBuffer& value) {
  FileCalls& calls = folder.calls();
  // Without O_NONBLOCK the open of a FIFO would wait for its writer.
  const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  const Descriptor file(calls, calls.open(shard, name, flags));
  if (!file) return says_no_value(errno) ? StoreStatus::kMiss : StoreStatus::kUnavailable;
  struct stat status = {};
  if (calls.status(file.get(), status) != 0) return StoreStatus::kUnavailable;
  Stamp stamp;
  const auto file_size = static_cast<std::uint64_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || file_size < sizeof stamp) return StoreStatus::kMiss;
  const std::uint64_t size = file_size - sizeof stamp;
  if (size > options_.max_value_bytes) return StoreStatus::kMiss;

  const auto fill = [&](std::span<std::byte> out, std::uint64_t offset) {
    while (!out.empty()) {
      if (is_late(deadline)) return StoreStatus::kUnavailable;
      const auto piece = out.first(std::min(out.size(), kPiece));
      const ssize_t got = calls.read(file.get(), piece, offset);
      if (got < 0) return StoreStatus::kUnavailable;
      if (got == 0) return StoreStatus::kMiss;  // it has become shorter
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
    return StoreStatus::kOk;
  };
  const StoreStatus stamped = fill(std::as_writable_bytes(std::span(&stamp, 1)), size);
  if (stamped != StoreStatus::kOk) return stamped;
  if (stamp.has_expired(wall_seconds())) {
    // Should a new value have come in between, its loss costs time.
    if (calls.unlink(shard, name) == 0) folder.usage().subtract(disk_bytes(status));
    return StoreStatus::kMiss;
  }
  const StoreStatus read = fill(value.resize(size), 0);
  if (read == StoreStatus::kOk) touch(calls, file.get(), status);
  return read;
}

void DirectoryStore::touch(FileCalls& calls, int file, const struct stat& status) const {
  const std::int64_t time = wall_seconds();
  const std::int64_t age = time - status.st_mtim.tv_sec;
  if (age < kTouchInterval.count() && age >= -kClockSlack.count()) return;
  calls.touch(file, {static_cast<time_t>(time), 0});  // where it cannot be, it is evicted sooner
}

StoreStatus DirectoryStore::put(const StoreKey& key, std::span<const std::byte> value,
                                std::chrono::seconds time_to_live, Deadline deadline) {
  if (value.size() > options_.max_value_bytes) return StoreStatus::kTooLarge;
  if (time_to_live < std::chrono::seconds(0)) return erase(key, deadline);  // expired already
  return fenced([&] {
    const Stamp stamp = Stamp::of(wall_seconds(), time_to_live);
    return value.size() <= SmallValues::kMostBytes ? put_small(key, value, stamp, deadline)
                                                   : put_large(key, value, stamp, deadline);
  });
}

// Runs `attempt` on the folder; it returns 0 or an errno. After the first failure, frees `bytes` on
// a full disk and looks for a folder that was removed, and tries once more.
template <class Attempt>
StoreStatus DirectoryStore::attempt_twice(std::uint64_t bytes, Deadline deadline, Attempt attempt) {
  for (int tries = 0;; ++tries) {
    const Folder open = folder();
    if (!open || is_late(deadline)) return StoreStatus::kUnavailable;
    const int error = attempt(open);
    if (error == 0) return StoreStatus::kOk;
    if (tries > 0) return StoreStatus::kUnavailable;
    if (is_full(error)) {
      free_disk(open, bytes, deadline);
    } else if (error == ENOENT || error == EBADF) {
      // The folder, or what it needs, was removed, or could not be made, or not be opened for
      // writing. That may be over.
      const std::lock_guard lock(folder_mutex_);
      if (folder_ == open) folder_ = nullptr;
    } else {
      return StoreStatus::kUnavailable;
    }
  }
}

StoreStatus DirectoryStore::put_small(const StoreKey& key, std::span<const std::byte> value,
                                      const Stamp& stamp, Deadline deadline) {
  return attempt_twice(SmallValues::kSetBytes, deadline, [&](const Folder& open) {
    const auto small = open->small_values();
    if (!small) return errno;
    bool is_first = false;
    const int error = small->put(key, value, stamp, options_.sync_writes, deadline, is_first);
    if (error != 0) return error;
    if (is_first) {
      open->usage().add(SmallValues::kSetBytes);
      make_room(open, SmallValues::kSetBytes, deadline);
    }
    return erase_file(*open, value_name(key));
  });
}

StoreStatus DirectoryStore::put_large(const StoreKey& key, std::span<const std::byte> value,
                                      const Stamp& stamp, Deadline deadline) {
  constexpr std::uint64_t kBlock = 4096;  // a guess at the file system's, until the file is there
  const std::uint64_t bytes = (value.size() + sizeof stamp + kBlock - 1) / kBlock * kBlock;
  if (bytes > limit_) return StoreStatus::kTooLarge;
  return attempt_twice(2 * bytes, deadline, [&](const Folder& open) {
    open->usage().add(bytes);
    const bool has_room = make_room(open, bytes, deadline);
    const std::int64_t corrections = open->usage().numbers().corrections;
    std::int64_t change = 0;
    const int error =
        has_room ? write_file(*open, value_name(key), value, stamp, deadline, change) : ETIMEDOUT;
    open->usage().settle(bytes, change, corrections);
    if (error != 0) return error;
    const auto small = open->small_values();
    return small ? small->erase(key, options_.sync_writes, deadline) : errno;
  });
}

// 0, or an errno: then nothing has changed, unless only the last sync failed. `change`: of the
// bytes that the folder's files take.
int DirectoryStore::write_file(StoreFolder& folder, const ValueName& name,
                               std::span<const std::byte> value, const Stamp& stamp,
                               Deadline deadline, std::int64_t& change) {
  FileCalls& calls = folder.calls();
  if (folder.temporary() < 0) return ENOENT;  // which may have changed since
  const Descriptor shard = folder.make_shard(name.shard.data(), options_.sync_writes);
  if (!shard) return errno;
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  std::string temporary;
  int number = -1;
  do {
    temporary = folder.temporary_name();
    number = calls.open(folder.temporary(), temporary.c_str(), flags);
  } while (number < 0 && errno == EEXIST);
  if (number < 0) return errno;
  const Descriptor file(calls, number);

  int error = write_temporary(folder, file.get(), value, stamp, deadline);
  struct stat before = {}, after = {};
  const bool replaces = calls.status_of(shard.get(), name.file.data(), before) == 0;
  if (error == 0 && calls.status(file.get(), after) != 0) error = errno;
  const auto rename = [&] {
    return calls.rename(folder.temporary(), temporary.c_str(), shard.get(), name.file.data());
  };
  if (error == 0 && rename() != 0) {
    error = errno;
    // An empty folder in the value's place.
    if (error == EISDIR && calls.remove_directory(shard.get(), name.file.data()) == 0) {
      error = rename() == 0 ? 0 : errno;
    }
  }
  if (error != 0) {
    calls.unlink(folder.temporary(), temporary.c_str());
    return error;
  }
  change = static_cast<std::int64_t>(disk_bytes(after));
  if (replaces && S_ISREG(before.st_mode)) change -= static_cast<std::int64_t>(disk_bytes(before));
  if (options_.sync_writes && calls.sync(shard.get()) != 0) return errno;
  return 0;
}

int DirectoryStore::write_temporary(StoreFolder& folder, int file, std::span<const std::byte> value,
                                    const Stamp& stamp, Deadline deadline) {
  FileCalls& calls = folder.calls();
  std::uint64_t offset = 0;
  const base::Bytes end = std::as_bytes(std::span(&stamp, 1));
  for (base::Bytes bytes : {value, end}) {
    while (!bytes.empty()) {
      if (is_late(deadline)) return ETIMEDOUT;
      const auto piece = bytes.first(std::min(bytes.size(), kPiece));
      const ssize_t put = calls.write(file, piece, offset);
      if (put < 0) return errno;
      if (put == 0) return EIO;
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      offset += static_cast<std::uint64_t>(put);
    }
  }
  if (!options_.sync_writes) return 0;
  return calls.sync(file) == 0 ? 0 : errno;
}

StoreStatus DirectoryStore::erase(const StoreKey& key, Deadline deadline) {
  return fenced([&] {
    return attempt_twice(0, deadline, [&](const Folder& open) {
      const auto small = open->small_values();
      if (!small) return errno;
      const int error = small->erase(key, options_.sync_writes, deadline);
      return error != 0 ? error : erase_file(*open, value_name(key));
    });
  });
}

// 0, also where there is none, or an errno.
int DirectoryStore::erase_file(StoreFolder& folder, const ValueName& name) {
  FileCalls& calls = folder.calls();
  const Descriptor shard = folder.open_folder(name.shard.data());
  if (!shard) return says_no_value(errno) ? 0 : errno;
  struct stat status = {};
  if (calls.status_of(shard.get(), name.file.data(), status) != 0) {
    return errno == ENOENT ? 0 : errno;
  }
  if (S_ISDIR(status.st_mode)) return 0;  // no value
  if (calls.unlink(shard.get(), name.file.data()) != 0) return errno == ENOENT ? 0 : errno;
  if (S_ISREG(status.st_mode)) folder.usage().subtract(disk_bytes(status));
  return options_.sync_writes && calls.sync(shard.get()) != 0 ? errno : 0;
}

}  // namespace incipit::store

namespace incipit::inline v0 {

std::shared_ptr<Store> make_directory_store(DirectoryStoreOptions options) {
  return std::make_shared<store::DirectoryStore>(std::move(options));
}

}  // namespace incipit::inline v0
