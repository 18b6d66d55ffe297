// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SUPPORT_MEMORY_FILE_H_
#define INCIPIT_TESTS_SUPPORT_MEMORY_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

namespace incipit::test {

/// A regular file that no disk sees, for tests that rewrite one thousands of times.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(::memfd_create("incipit", 0)) {
    if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
    write(0, bytes);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

  void write(std::size_t offset, std::string_view bytes) {
    const auto written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written != static_cast<ssize_t>(bytes.size())) throw std::runtime_error("pwrite failed");
  }
  void resize(std::size_t bytes) {
    if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
      throw std::runtime_error("ftruncate failed");
    }
  }

 private:
  int descriptor_;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SUPPORT_MEMORY_FILE_H_
