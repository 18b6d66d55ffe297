// SPDX-License-Identifier: Apache-2.0
#include "store/file_calls.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace incipit::store {

int FileCalls::do_open(int directory, const char* name, int flags) noexcept {
  return ::openat(directory, name, flags | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

int FileCalls::do_close(int file) noexcept { return ::close(file); }

int FileCalls::do_status(int file, struct stat& status) noexcept { return ::fstat(file, &status); }

int FileCalls::do_status_of(int directory, const char* name, struct stat& status) noexcept {
  return ::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW);
}

ssize_t FileCalls::do_read(int file, std::span<std::byte> out, std::uint64_t offset) noexcept {
  return ::pread(file, out.data(), out.size(), static_cast<off_t>(offset));
}

ssize_t FileCalls::do_write(int file, base::Bytes bytes, std::uint64_t offset) noexcept {
  return ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
}

int FileCalls::do_resize(int file, std::uint64_t bytes) noexcept {
  return ::ftruncate(file, static_cast<off_t>(bytes));
}

int FileCalls::do_sync(int file) noexcept { return ::fsync(file); }

int FileCalls::do_rename(int from, const char* name, int to, const char* new_name) noexcept {
  return ::renameat(from, name, to, new_name);
}

int FileCalls::do_unlink(int directory, const char* name) noexcept {
  return ::unlinkat(directory, name, 0);
}

int FileCalls::do_remove_directory(int directory, const char* name) noexcept {
  return ::unlinkat(directory, name, AT_REMOVEDIR);
}

int FileCalls::do_make_directory(int directory, const char* name) noexcept {
  return ::mkdirat(directory, name, S_IRWXU);
}

int FileCalls::do_touch(int file, timespec modified) noexcept {
  const timespec times[2] = {{0, UTIME_OMIT}, modified};
  return ::futimens(file, times);
}

int FileCalls::do_lock(int file, int operation) noexcept { return ::flock(file, operation); }

ssize_t FileCalls::do_list(int directory, std::span<std::byte> out) noexcept {
  return ::syscall(SYS_getdents64, directory, out.data(), out.size());
}

}  // namespace incipit::store
