// SPDX-License-Identifier: Apache-2.0
#include "cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "base/check.h"

namespace incipit::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kChunkBytes = std::size_t{64} << 20;
constexpr std::size_t kCacheLine = 64;

constexpr std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t mapped_bytes(std::size_t bytes) noexcept {
  return round_up(bytes, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

void free_pages(void* data, std::size_t bytes) noexcept { munmap(data, mapped_bytes(bytes)); }

std::byte* map_pages(std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    base::throw_error(ErrorCode::kOutOfMemory,
                      "the system refuses " + std::to_string(bytes) +
                          " bytes of memory; use a smaller model, context or KV pool");
  }
  return static_cast<std::byte*>(data);
}

/// Huge pages need their alignment: maps too much and gives back both ends.
std::byte* map_huge_pages(std::size_t bytes) {
  std::byte* const data = map_pages(bytes + kHugePage);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(data) % kHugePage;
  const std::size_t front = misaligned == 0 ? 0 : kHugePage - misaligned;
  if (front > 0) munmap(data, front);
  if (front < kHugePage) munmap(data + front + bytes, kHugePage - front);
  // Only faster: without huge pages all works as well.
  static_cast<void>(madvise(data + front, bytes, MADV_HUGEPAGE));
  return data + front;
}

}  // namespace

device::Buffer allocate_pages(std::size_t bytes) {
  if (bytes == 0) return {};
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) {
    base::throw_error(ErrorCode::kOutOfMemory, "more memory was asked for than a machine can have");
  }
  const std::size_t mapped = mapped_bytes(bytes);
  std::byte* const data = mapped >= kHugePage ? map_huge_pages(mapped) : map_pages(mapped);
  return {data, bytes, free_pages};
}

WeightArena::Piece WeightArena::take(std::size_t bytes) {
  if (chunk_ == nullptr || chunk_->bytes() - used_ < bytes) {
    const std::size_t chunk_bytes = std::max(round_up(bytes, kHugePage), kChunkBytes);
    chunk_ = std::make_shared<const device::Buffer>(allocate_pages(chunk_bytes));
    used_ = 0;
  }
  Piece piece{chunk_->data() + used_, chunk_};
  used_ = std::min(used_ + round_up(bytes, kCacheLine), chunk_->bytes());
  return piece;
}

}  // namespace incipit::cpu
