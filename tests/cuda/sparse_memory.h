// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_SPARSE_MEMORY_H_
#define INCIPIT_TESTS_CUDA_SPARSE_MEMORY_H_

#include <sys/mman.h>

#include <cstddef>

namespace incipit::testing {

/// Zeros that take memory only where they are touched: for offsets beyond 32 bits.
class SparseMemory {
 public:
  explicit SparseMemory(std::size_t bytes)
      : bytes_(bytes),
        data_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~SparseMemory() {
    if (is_there()) munmap(data_, bytes_);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  bool is_there() const { return data_ != MAP_FAILED; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_CUDA_SPARSE_MEMORY_H_
