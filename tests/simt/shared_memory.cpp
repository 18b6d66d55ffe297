// SPDX-License-Identifier: Apache-2.0
#include "simt/shared_memory.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "simt/sanitizers.h"

namespace incipit::simt {
namespace {

constexpr std::size_t kAlignment = 128;  // so that banks count from the start
constexpr int kNotANumber = 0xff;        // as f32, f16 and bf16

}  // namespace

unsigned char* SharedMemory::add(const void* key, std::size_t bytes) {
  const OverlookRaces overlook;  // it is there from the start, whoever names it first
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) throw std::bad_alloc();
  std::memset(memory, kNotANumber, bytes);
  pieces_.push_back({key, static_cast<unsigned char*>(memory), bytes});
  return pieces_.back().data;
}

void SharedMemory::begin_block(std::size_t dynamic_bytes) {
  dynamic_ = dynamic_bytes > 0 ? add(nullptr, dynamic_bytes) : nullptr;
}

void SharedMemory::end_block() {
  const OverlookRaces overlook;
  for (const Piece& piece : pieces_) std::free(piece.data);
  pieces_.clear();
  dynamic_ = nullptr;
}

void* SharedMemory::of_declaration(const void* key, std::size_t bytes) {
  for (const Piece& piece : pieces_) {
    if (piece.key == key) return piece.data;
  }
  return add(key, bytes);
}

bool SharedMemory::contains(const void* address, std::size_t bytes) const {
  const auto* const first = static_cast<const unsigned char*>(address);
  for (const Piece& piece : pieces_) {
    if (first >= piece.data && first + bytes <= piece.data + piece.bytes) return true;
  }
  return false;
}

}  // namespace incipit::simt
