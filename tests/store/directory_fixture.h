// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_DIRECTORY_FIXTURE_H_
#define INCIPIT_TESTS_STORE_DIRECTORY_FIXTURE_H_

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "store/directory_store.h"
#include "store/value_name.h"

namespace incipit::test {

inline constexpr std::uint64_t kMega = 1 << 20;
/// Bytes of a value that has a file of its own, and of one that has not.
inline constexpr std::size_t kLarge = 1000;
inline constexpr std::size_t kSmall = 150;
static_assert(kSmall <= store::SmallValues::kMostBytes && kLarge > store::SmallValues::kMostBytes);

inline std::filesystem::path file_of(const std::filesystem::path& folder, const StoreKey& key) {
  const store::ValueName name = store::value_name(key);
  return folder / name.shard.data() / name.file.data();
}

/// Names of the files that were being written and are still there.
inline std::vector<std::string> temporary_files(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "temporary", missing)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

/// Bytes that a folder's files and folders take on the disk, counted without the store.
inline std::uint64_t bytes_on_disk(const std::filesystem::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code vanished;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, vanished)) {
    struct stat status = {};
    if (entry.path().filename() == "usage") continue;
    if (::lstat(entry.path().c_str(), &status) == 0) bytes += store::disk_bytes(status);
  }
  return bytes;
}

/// Sets when a value was last used.
inline void set_last_use(const std::filesystem::path& file, std::chrono::seconds since_1970) {
  const timespec times[2] = {{0, UTIME_OMIT}, {since_1970.count(), 0}};
  if (::utimensat(AT_FDCWD, file.c_str(), times, 0) != 0) throw std::runtime_error("utimensat");
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_DIRECTORY_FIXTURE_H_
