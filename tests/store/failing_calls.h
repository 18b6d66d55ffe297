// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_FAILING_CALLS_H_
#define INCIPIT_TESTS_STORE_FAILING_CALLS_H_

#include <sys/file.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <string_view>

#include "store/file_calls.h"

namespace incipit::test {

/// The system's calls, of which the test makes one or all fail, or to which it adds something of
/// its own. Not thread-safe.
class FailingCalls final : public store::FileCalls {
 public:
  enum class Fault { kError, kShort };  // kShort: half of a write or a read

  std::uint64_t calls = 0;                         // made so far, but for close()
  std::uint64_t fail_at = 0;                       // the call of this number fails; 0: none
  int error = EIO;                                 // how
  Fault fault = Fault::kError;                     // the same
  std::string_view failed = {};                    // the call that did
  std::function<int(std::string_view call)> also;  // runs before each call; an errno fails it

  /// Counts from 0 again.
  void restart(std::uint64_t new_fail_at = 0) {
    calls = 0;
    fail_at = new_fail_at;
    failed = {};
  }

 protected:
  int do_open(int directory, const char* name, int flags) noexcept override {
    return fails("open") ? -1 : FileCalls::do_open(directory, name, flags);
  }
  int do_status(int file, struct stat& status) noexcept override {
    return fails("status") ? -1 : FileCalls::do_status(file, status);
  }
  int do_status_of(int directory, const char* name, struct stat& status) noexcept override {
    return fails("status_of") ? -1 : FileCalls::do_status_of(directory, name, status);
  }
  ssize_t do_read(int file, std::span<std::byte> out, std::uint64_t offset) noexcept override {
    if (fails("read")) return -1;
    return FileCalls::do_read(file, out.first(size(out.size())), offset);
  }
  ssize_t do_write(int file, base::Bytes bytes, std::uint64_t offset) noexcept override {
    if (fails("write")) return -1;
    return FileCalls::do_write(file, bytes.first(size(bytes.size())), offset);
  }
  int do_resize(int file, std::uint64_t bytes) noexcept override {
    return fails("resize") ? -1 : FileCalls::do_resize(file, bytes);
  }
  int do_sync(int file) noexcept override { return fails("sync") ? -1 : FileCalls::do_sync(file); }
  int do_rename(int from, const char* name, int to, const char* new_name) noexcept override {
    return fails("rename") ? -1 : FileCalls::do_rename(from, name, to, new_name);
  }
  int do_unlink(int directory, const char* name) noexcept override {
    return fails("unlink") ? -1 : FileCalls::do_unlink(directory, name);
  }
  int do_remove_directory(int directory, const char* name) noexcept override {
    return fails("remove_directory") ? -1 : FileCalls::do_remove_directory(directory, name);
  }
  int do_make_directory(int directory, const char* name) noexcept override {
    return fails("make_directory") ? -1 : FileCalls::do_make_directory(directory, name);
  }
  int do_touch(int file, timespec modified) noexcept override {
    return fails("touch") ? -1 : FileCalls::do_touch(file, modified);
  }
  int do_lock(int file, int operation) noexcept override {
    // Nothing makes the release of a lock fail.
    if (operation == LOCK_UN) return FileCalls::do_lock(file, operation);
    return fails("lock") ? -1 : FileCalls::do_lock(file, operation);
  }
  ssize_t do_list(int directory, std::span<std::byte> out) noexcept override {
    return fails("list") ? -1 : FileCalls::do_list(directory, out);
  }

 private:
  bool fails(std::string_view call) {
    ++calls;
    int reason = also ? also(call) : 0;
    if (calls == fail_at) {
      failed = call;
      if (fault == Fault::kError) reason = error;
    }
    if (reason == 0) return false;
    errno = reason;
    return true;
  }
  std::size_t size(std::size_t whole) const {
    return calls == fail_at && fault == Fault::kShort ? (whole + 1) / 2 : whole;
  }
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_FAILING_CALLS_H_
