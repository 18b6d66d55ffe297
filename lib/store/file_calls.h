// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_FILE_CALLS_H_
#define INCIPIT_STORE_FILE_CALLS_H_

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"

namespace incipit::store {

/// The system calls that a directory store makes, so that tests can make any of them fail. Results
/// and errno are the system's, but a call that a signal interrupts is made again. `directory` is an
/// open one, or AT_FDCWD.
class FileCalls {
 private:
  template <class Call>
  static auto retried(Call call) noexcept {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
  }

 public:
  virtual ~FileCalls() = default;

  /// O_CLOEXEC is added to `flags`. A new file is for its owner only.
  int open(int directory, const char* name, int flags) noexcept {
    return retried([&] { return do_open(directory, name, flags); });
  }
  int close(int file) noexcept { return do_close(file); }  // Linux has closed it after EINTR too
  int status(int file, struct stat& status) noexcept {
    return retried([&] { return do_status(file, status); });
  }
  /// Of the name itself, should it be a link.
  int status_of(int directory, const char* name, struct stat& status) noexcept {
    return retried([&] { return do_status_of(directory, name, status); });
  }
  ssize_t read(int file, std::span<std::byte> out, std::uint64_t offset) noexcept {
    return retried([&] { return do_read(file, out, offset); });
  }
  ssize_t write(int file, base::Bytes bytes, std::uint64_t offset) noexcept {
    return retried([&] { return do_write(file, bytes, offset); });
  }
  int resize(int file, std::uint64_t bytes) noexcept {
    return retried([&] { return do_resize(file, bytes); });
  }
  int sync(int file) noexcept {
    return retried([&] { return do_sync(file); });
  }
  int rename(int from, const char* name, int to, const char* new_name) noexcept {
    return retried([&] { return do_rename(from, name, to, new_name); });
  }
  int unlink(int directory, const char* name) noexcept {
    return retried([&] { return do_unlink(directory, name); });
  }
  int remove_directory(int directory, const char* name) noexcept {
    return retried([&] { return do_remove_directory(directory, name); });
  }
  /// For its owner only.
  int make_directory(int directory, const char* name) noexcept {
    return retried([&] { return do_make_directory(directory, name); });
  }
  /// Sets the time of the last modification, and no other.
  int touch(int file, timespec modified) noexcept {
    return retried([&] { return do_touch(file, modified); });
  }
  int lock(int file, int operation) noexcept {  // flock
    return retried([&] { return do_lock(file, operation); });
  }
  /// Some of a directory's entries, as getdents64 gives them.
  ssize_t list(int directory, std::span<std::byte> out) noexcept {
    return retried([&] { return do_list(directory, out); });
  }

 protected:
  virtual int do_open(int directory, const char* name, int flags) noexcept;
  virtual int do_close(int file) noexcept;
  virtual int do_status(int file, struct stat& status) noexcept;
  virtual int do_status_of(int directory, const char* name, struct stat& status) noexcept;
  virtual ssize_t do_read(int file, std::span<std::byte> out, std::uint64_t offset) noexcept;
  virtual ssize_t do_write(int file, base::Bytes bytes, std::uint64_t offset) noexcept;
  virtual int do_resize(int file, std::uint64_t bytes) noexcept;
  virtual int do_sync(int file) noexcept;
  virtual int do_rename(int from, const char* name, int to, const char* new_name) noexcept;
  virtual int do_unlink(int directory, const char* name) noexcept;
  virtual int do_remove_directory(int directory, const char* name) noexcept;
  virtual int do_make_directory(int directory, const char* name) noexcept;
  virtual int do_touch(int file, timespec modified) noexcept;
  virtual int do_lock(int file, int operation) noexcept;
  virtual ssize_t do_list(int directory, std::span<std::byte> out) noexcept;
};

/// An open file. Closes it and leaves errno alone.
class Descriptor {
 public:
  Descriptor() = default;
  /// `file` may be -1: none.
  Descriptor(FileCalls& calls, int file) noexcept : calls_(&calls), file_(file) {}
  Descriptor(Descriptor&& other) noexcept
      : calls_(other.calls_), file_(std::exchange(other.file_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(calls_, other.calls_);
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor() {
    if (file_ < 0) return;
    const int error = errno;
    calls_->close(file_);
    errno = error;
  }

  explicit operator bool() const noexcept { return file_ >= 0; }
  int get() const noexcept { return file_; }

 private:
  FileCalls* calls_ = nullptr;
  int file_ = -1;
};

/// Bytes that a file takes on its disk.
inline std::uint64_t disk_bytes(const struct stat& status) noexcept {
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace incipit::store

#endif  // INCIPIT_STORE_FILE_CALLS_H_
