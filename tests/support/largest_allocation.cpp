// SPDX-License-Identifier: Apache-2.0
#include "support/largest_allocation.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace incipit::test {
namespace {

std::atomic<std::size_t> largest{0};

}  // namespace

std::size_t largest_allocation() noexcept { return largest; }
void forget_allocations() noexcept { largest = 0; }

}  // namespace incipit::test

// All forms that are not aligned: a sanitizer's runtime brings its own of each.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  std::size_t before = incipit::test::largest;
  while (bytes > before && !incipit::test::largest.compare_exchange_weak(before, bytes)) {
  }
  return std::malloc(bytes == 0 ? 1 : bytes);
}

void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* operator new[](std::size_t bytes) { return operator new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return operator new(bytes, std::nothrow);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
