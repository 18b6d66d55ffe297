// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_SHARED_MEMORY_H_
#define INCIPIT_TESTS_SIMT_SHARED_MEMORY_H_

#include <cstddef>
#include <vector>

namespace incipit::simt {

/// The shared memory of the block that runs: the dynamic part and one piece per static array, each
/// a heap block of exactly its size, so that AddressSanitizer sees what is beside it, and full of
/// NaN.
class SharedMemory {
 public:
  SharedMemory() = default;
  ~SharedMemory() { end_block(); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block(std::size_t dynamic_bytes);
  void end_block();

  unsigned char* dynamic() const { return dynamic_; }
  /// The array of this block for a declaration, of which `key` is an address of its own.
  void* of_declaration(const void* key, std::size_t bytes);
  bool contains(const void* address, std::size_t bytes) const;

 private:
  struct Piece {
    const void* key;  // null: the dynamic part
    unsigned char* data;
    std::size_t bytes;
  };
  unsigned char* add(const void* key, std::size_t bytes);

  unsigned char* dynamic_ = nullptr;
  std::vector<Piece> pieces_;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_SHARED_MEMORY_H_
