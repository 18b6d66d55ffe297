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
constexpr std::int16_t kNobody = -1;
// Of the dynamic part: no more aligned than CUDA promises for all kernels together, so one that
// swizzles must align its tiles itself.
constexpr std::uint32_t kFirstAddress = 1024 + 128;

constexpr std::uint32_t end_of(std::uint32_t address, std::size_t bytes) {
  return (address + static_cast<std::uint32_t>(bytes) + 127) / 128 * 128;
}

}  // namespace

unsigned char* SharedMemory::add(const void* key, std::size_t bytes) {
  const OverlookRaces overlook;  // it is there from the start, whoever names it first
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) throw std::bad_alloc();
  std::memset(memory, kNotANumber, bytes);
  const std::uint32_t address =
      pieces_.empty() ? kFirstAddress : end_of(pieces_.back().address, pieces_.back().bytes);
  const std::size_t granules = track_ ? (bytes + kGranule - 1) / kGranule : 0;
  pieces_.push_back({key, static_cast<unsigned char*>(memory), bytes, address,
                     std::vector<std::int16_t>(granules, kNobody)});
  return pieces_.back().data;
}

void SharedMemory::begin_block(std::size_t dynamic_bytes, bool track) {
  track_ = track;
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

const SharedMemory::Piece* SharedMemory::piece_of(const void* address, std::size_t bytes) const {
  const auto* const first = static_cast<const unsigned char*>(address);
  for (const Piece& piece : pieces_) {
    if (first >= piece.data && first + bytes <= piece.data + piece.bytes) return &piece;
  }
  return nullptr;
}

bool SharedMemory::contains(const void* address, std::size_t bytes) const {
  return piece_of(address, bytes) != nullptr;
}

std::uint32_t SharedMemory::address_of(const void* pointer) const {
  const Piece* const piece = piece_of(pointer, 0);
  if (piece == nullptr) return 0;
  return piece->address +
         static_cast<std::uint32_t>(static_cast<const unsigned char*>(pointer) - piece->data);
}

unsigned char* SharedMemory::at(std::uint32_t address, std::size_t bytes) const {
  for (const Piece& piece : pieces_) {
    if (address >= piece.address && address + bytes <= piece.address + piece.bytes) {
      return piece.data + (address - piece.address);
    }
  }
  return nullptr;
}

void SharedMemory::note_store(const void* address, std::size_t bytes, unsigned thread) {
  if (!track_) return;
  const Piece* const found = piece_of(address, bytes);
  if (found == nullptr) return;
  Piece& piece = pieces_[static_cast<std::size_t>(found - pieces_.data())];
  const auto offset =
      static_cast<std::size_t>(static_cast<const unsigned char*>(address) - piece.data);
  for (std::size_t g = offset / kGranule; g * kGranule < offset + bytes; ++g) {
    piece.writers[g] = static_cast<std::int16_t>(thread);
  }
}

void SharedMemory::fence(unsigned thread) {
  for (Piece& piece : pieces_) {
    for (std::int16_t& writer : piece.writers) {
      writer = writer == static_cast<std::int16_t>(thread) ? kNobody : writer;
    }
  }
}

int SharedMemory::unfenced_writer(const void* address, std::size_t bytes) const {
  const Piece* const piece = piece_of(address, bytes);
  if (piece == nullptr || piece->writers.empty()) return kNobody;
  const auto offset =
      static_cast<std::size_t>(static_cast<const unsigned char*>(address) - piece->data);
  for (std::size_t g = offset / kGranule; g * kGranule < offset + bytes; ++g) {
    if (piece->writers[g] != kNobody) return piece->writers[g];
  }
  return kNobody;
}

}  // namespace incipit::simt
