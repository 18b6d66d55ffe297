// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace incipit::base {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& why) {
  throw_error(ErrorCode::kModelUnreadable, "cannot read " + path.string() + ": " + why);
}

std::string reason(int error) { return std::generic_category().message(error); }

int open_retrying(const std::filesystem::path& path) {
  int descriptor;
  do {
    // Without O_NONBLOCK the open of a FIFO would wait for its writer.
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

}  // namespace

ReadFile::ReadFile(const std::filesystem::path& path)
    : path_(path), descriptor_(open_retrying(path)) {
  if (descriptor_ < 0) fail(path_, reason(errno));
  struct stat status = {};
  const int error = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail(path_, error != 0 ? reason(error) : "it is no regular file");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

ReadFile::~ReadFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ReadFile::ReadFile(ReadFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(std::exchange(other.size_, 0)) {}

void ReadFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (out.size() > size_ || offset > size_ - out.size()) {
    fail(path_, "it ends at byte " + std::to_string(size_) + ", but " + std::to_string(out.size()) +
                    " bytes are wanted from byte " + std::to_string(offset) +
                    "; it may be truncated");
  }
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail(path_, reason(errno));
    }
    if (got == 0) fail(path_, "it has become shorter while it was read");
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

std::string read_text_file(const std::filesystem::path& path, std::uint64_t cap) {
  const ReadFile file(path);
  if (file.size() > cap) {
    fail(path, "it has " + std::to_string(file.size()) + " bytes where at most " +
                   std::to_string(cap) + " are allowed");
  }
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

}  // namespace incipit::base
