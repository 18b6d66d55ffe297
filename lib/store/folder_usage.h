// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_FOLDER_USAGE_H_
#define INCIPIT_STORE_FOLDER_USAGE_H_

#include <cstdint>
#include <mutex>
#include <optional>

#include "store/file_calls.h"

namespace incipit::store {

/// How many bytes the files of a folder take. All processes that use the folder add to the same
/// numbers in a file, each when it has enough to add. What a killed process did not get to add is
/// found by counting: correct(). Thread-safe.
class FolderUsage {
 public:
  /// What the file holds, little-endian. Bytes.
  struct Numbers {
    std::int64_t total = 0;
    std::int64_t added = 0;    // ever
    std::int64_t removed = 0;  // ever
    std::int64_t corrections = 0;
  };

  /// `file` may be none (a read-only folder): the numbers are this process' own then. `unnoticed`:
  /// bytes that need not be told to other processes at once.
  FolderUsage(FileCalls& calls, Descriptor file, std::uint64_t unnoticed);
  /// Tells the others what they do not know yet.
  ~FolderUsage();
  FolderUsage(const FolderUsage&) = delete;
  FolderUsage& operator=(const FolderUsage&) = delete;

  /// Whether the file held numbers when it was opened.
  bool was_known() const noexcept { return was_known_; }
  /// What this process knows.
  Numbers numbers() const noexcept;
  std::uint64_t total() const noexcept { return static_cast<std::uint64_t>(numbers().total); }
  /// Looks at what the others have told.
  void refresh() noexcept;

  /// Files came (> 0) or went.
  void change(std::int64_t bytes) noexcept;
  void add(std::uint64_t bytes) noexcept { change(static_cast<std::int64_t>(bytes)); }
  void subtract(std::uint64_t bytes) noexcept { change(-static_cast<std::int64_t>(bytes)); }
  /// The end of add(bytes) in advance of a file: it came to a change of `change` bytes, 0 where
  /// nothing came of it. `corrections`: what numbers() said when the writing began.
  void settle(std::uint64_t bytes, std::int64_t change, std::int64_t corrections) noexcept;

  /// All files were counted, one after the other, since the numbers were `before`. Which of those
  /// that came or went meanwhile were counted is unknown; so this corrects a total that cannot be.
  /// `coming`: bytes that the caller added for a file that is not there yet.
  void correct(std::uint64_t counted, const Numbers& before, std::uint64_t coming) noexcept;

 private:
  void change_locked(std::int64_t bytes) noexcept;
  std::optional<Numbers> read() noexcept;
  bool lock() noexcept;
  template <class Change>
  void exchange(Change change) noexcept;

  FileCalls& calls_;
  const Descriptor file_;
  const std::int64_t unnoticed_;
  bool was_known_ = false;

  mutable std::mutex mutex_;  // of all below
  Numbers shared_;            // the file's when they were last seen
  Numbers own_;               // what is to be added to them
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_FOLDER_USAGE_H_
