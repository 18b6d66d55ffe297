// SPDX-License-Identifier: Apache-2.0
#include "heap_meter.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace bench {
namespace {

std::atomic<std::size_t> in_use{0}, peak{0};

void* allocate(std::size_t bytes) noexcept {
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  const std::size_t now = in_use += malloc_usable_size(memory);
  std::size_t before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void release(void* memory) noexcept {
  in_use -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

HeapMeter::HeapMeter() noexcept : before_(in_use) { peak = before_; }
std::size_t HeapMeter::peak_bytes() const noexcept { return peak - before_; }

}  // namespace bench

// All forms that are not aligned: a sanitizer's runtime brings its own of each.
void* operator new(std::size_t bytes) {
  void* const memory = bench::allocate(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return bench::allocate(bytes);
}
void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return bench::allocate(bytes);
}

void operator delete(void* memory) noexcept { bench::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { bench::release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { bench::release(memory); }
void operator delete[](void* memory) noexcept { bench::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { bench::release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { bench::release(memory); }
