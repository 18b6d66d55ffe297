// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_STORE_FOLDER_H_
#define INCIPIT_STORE_STORE_FOLDER_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "store/file_calls.h"
#include "store/folder_usage.h"
#include "store/small_values.h"

namespace incipit::store {

/// A directory store's folder while it is open:
///     00/ ... ff/   the shards: values
///     small         SmallValues
///     temporary/    files that are being written
///     usage         FolderUsage's number
/// Everything in it is reached from held descriptors, and no link is followed. Thread-safe.
class StoreFolder {
 public:
  /// Null, with the reason in errno, where it cannot be opened. A folder that cannot be written is
  /// opened all the same.
  static std::shared_ptr<StoreFolder> open(std::shared_ptr<FileCalls> calls,
                                           const std::filesystem::path& path,
                                           std::uint64_t capacity_bytes);

  FileCalls& calls() const noexcept { return *calls_; }
  int folder() const noexcept { return folder_.get(); }
  /// -1 where the folder cannot be written.
  int temporary() const noexcept { return temporary_.get(); }
  FolderUsage& usage() noexcept { return usage_; }

  /// One of its folders; none, with the reason in errno, where it is missing or something else.
  Descriptor open_folder(const char* name) const noexcept;
  /// The same, made where it is missing; `sync`: for good.
  Descriptor make_shard(const char* name, bool sync) noexcept;

  /// Null, with the reason in errno, where the table can be neither opened nor made.
  std::shared_ptr<SmallValues> small_values();

  /// A name that no other process, thread or machine uses.
  std::string temporary_name();

  /// Somebody removed it; what is at its path now is another one.
  bool is_removed() const noexcept;

 private:
  StoreFolder(std::shared_ptr<FileCalls> calls, Descriptor folder, std::uint64_t capacity_bytes);
  std::shared_ptr<SmallValues> open_small_values();
  std::shared_ptr<SmallValues> make_small_values();

  const std::shared_ptr<FileCalls> calls_;
  const Descriptor folder_;
  const Descriptor temporary_;
  const std::uint64_t capacity_bytes_;
  FolderUsage usage_;
  const std::uint64_t random_;  // of this object's temporary names
  std::atomic<std::uint64_t> names_ = 0;

  std::mutex small_mutex_;
  std::shared_ptr<SmallValues> small_;  // null until it is wanted
};

/// The name of the file of small values.
inline constexpr char kSmallValues[] = "small";
/// What the names of temporary files begin with.
inline constexpr std::string_view kTemporaryPrefix = "value.";

}  // namespace incipit::store

#endif  // INCIPIT_STORE_STORE_FOLDER_H_
