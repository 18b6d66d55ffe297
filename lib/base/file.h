// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_FILE_H_
#define INCIPIT_BASE_FILE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace incipit::base {

/// A file that is read at given offsets into own memory. Never mapped: a file that shrinks under a
/// mapping kills the process. Thread-safe.
class ReadFile {
 public:
  /// Throws Error{kModelUnreadable} where it cannot be opened or is no regular file.
  explicit ReadFile(const std::filesystem::path& path);
  ~ReadFile();
  ReadFile(ReadFile&& other) noexcept;
  ReadFile& operator=(ReadFile&&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }  // when it was opened

  /// Fills `out` from `offset`. Throws Error{kModelUnreadable} where the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The whole of a file of at most `cap` bytes. Throws Error{kModelUnreadable}.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t cap);

}  // namespace incipit::base

#endif  // INCIPIT_BASE_FILE_H_
