// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_SHARED_MEMORY_H_
#define INCIPIT_TESTS_SIMT_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
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

  /// `track`: remembers who has stored what, for unfenced_writer().
  void begin_block(std::size_t dynamic_bytes, bool track = false);
  void end_block();

  unsigned char* dynamic() const { return dynamic_; }
  /// The array of this block for a declaration, of which `key` is an address of its own.
  void* of_declaration(const void* key, std::size_t bytes);
  bool contains(const void* address, std::size_t bytes) const;

  /// The address in the state space, as instructions and descriptors have it.
  std::uint32_t address_of(const void* pointer) const;
  /// What lies there; null unless all of it is shared memory.
  unsigned char* at(std::uint32_t address, std::size_t bytes) const;

  /// Stores of threads are seen by wgmma and tensor copies (the async proxy) after a fence of the
  /// thread that stored.
  void note_store(const void* address, std::size_t bytes, unsigned thread);
  void fence(unsigned thread);
  /// A thread that stored to one of these bytes and has not fenced; -1: none.
  int unfenced_writer(const void* address, std::size_t bytes) const;

 private:
  struct Piece {
    const void* key;  // null: the dynamic part
    unsigned char* data;
    std::size_t bytes;
    std::uint32_t address;
    std::vector<std::int16_t> writers;  // by granule; empty unless tracked
  };
  static constexpr std::size_t kGranule = 16;  // bytes
  const Piece* piece_of(const void* address, std::size_t bytes) const;
  unsigned char* add(const void* key, std::size_t bytes);

  unsigned char* dynamic_ = nullptr;
  std::vector<Piece> pieces_;
  bool track_ = false;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_SHARED_MEMORY_H_
