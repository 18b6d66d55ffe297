// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_DIRECTORY_STORE_H_
#define INCIPIT_STORE_DIRECTORY_STORE_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "incipit/store.h"
#include "store/clock.h"
#include "store/file_calls.h"
#include "store/folder_sweep.h"
#include "store/stamp.h"
#include "store/store_folder.h"
#include "store/value_name.h"

namespace incipit::store {

/// What tests replace of a directory store.
struct DirectorySeams {
  std::shared_ptr<FileCalls> calls = {};      // null: the system's
  WallClock clock = {};                       // of expiry and of the time of last use
  std::chrono::seconds temporary_grace{600};  // how old a temporary file is nobody's
};

/// make_directory_store()'s. Small values share a file (SmallValues). Each other one has its own,
/// which holds the value and its Stamp behind it. That file appears under its name by a rename when
/// it is complete, so a reader sees the old one or the new one. Nothing is mapped: a file that
/// shrinks while it is read is a miss.
class DirectoryStore final : public Store {
 public:
  /// A time of last use that is younger is not written anew, so that reading does not write.
  static constexpr std::chrono::seconds kTouchInterval{60};

  explicit DirectoryStore(DirectoryStoreOptions options, DirectorySeams seams = {});

  StoreStatus get(const StoreKey& key, Deadline deadline, StoreBuffer& value) override;
  StoreStatus put(const StoreKey& key, std::span<const std::byte> value,
                  std::chrono::seconds time_to_live, Deadline deadline) override;
  StoreStatus erase(const StoreKey& key, Deadline deadline) override;
  std::string_view name() const noexcept override { return "directory"; }
  std::uint64_t size_bytes() const noexcept override;

 private:
  using Folder = std::shared_ptr<StoreFolder>;

  std::int64_t wall_seconds() const;

  Folder folder();
  Folder open_folder() const;
  bool is_gone(const Folder& folder);
  StoreStatus read_file(StoreFolder& folder, int shard, const char* name, Deadline deadline,
                        StoreBuffer& value);
  int write_file(StoreFolder& folder, const ValueName& name, std::span<const std::byte> value,
                 const Stamp& stamp, Deadline deadline, std::int64_t& change);
  int write_temporary(StoreFolder& folder, int file, std::span<const std::byte> value,
                      const Stamp& stamp, Deadline deadline);
  template <class Attempt>
  StoreStatus attempt_twice(std::uint64_t bytes, Deadline deadline, Attempt attempt);
  StoreStatus put_small(const StoreKey& key, std::span<const std::byte> value, const Stamp& stamp,
                        Deadline deadline);
  StoreStatus put_large(const StoreKey& key, std::span<const std::byte> value, const Stamp& stamp,
                        Deadline deadline);
  int erase_file(StoreFolder& folder, const ValueName& name);
  void touch(FileCalls& calls, int file, const struct stat& status) const;

  bool make_room(const Folder& folder, std::uint64_t bytes, Deadline deadline);
  void free_disk(const Folder& folder, std::uint64_t bytes, Deadline deadline);

  const DirectoryStoreOptions options_;
  const DirectorySeams seams_;
  // The shares of the capacity at which sweeping starts and ends, and which is never passed: the
  // rest is for what other processes have not told yet. Bytes.
  const std::uint64_t high_, low_, limit_;

  mutable std::mutex folder_mutex_;
  Folder folder_;  // null while it is gone

  std::mutex sweep_mutex_;
  FolderSweep sweep_;                  // under it
  std::atomic<bool> counting_ = true;  // the usage may miss what a killed process had written
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_DIRECTORY_STORE_H_
