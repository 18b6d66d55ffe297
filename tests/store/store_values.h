// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_STORE_VALUES_H_
#define INCIPIT_TESTS_STORE_STORE_VALUES_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "incipit/store.h"

namespace incipit::test {

/// Bytes that tell their seed and their place; a shorter pattern is the front of a longer one.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (std::byte& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<std::byte>(state >> 56);
  }
  return bytes;
}

/// A deadline that no test meets.
inline Store::Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::minutes(5); }

/// What a get() gave.
struct Read {
  StoreStatus status = StoreStatus::kMiss;
  std::vector<std::byte> bytes = {};  // of a hit

  bool is_hit() const { return status == StoreStatus::kOk; }
  bool holds(const std::vector<std::byte>& value) const { return is_hit() && bytes == value; }
};

inline Read read(Store& store, const StoreKey& key) {
  StoreBuffer value;
  Read result{store.get(key, soon(), value)};
  if (result.is_hit()) result.bytes.assign(value.bytes().begin(), value.bytes().end());
  return result;
}

inline StoreStatus write(Store& store, const StoreKey& key, std::span<const std::byte> value,
                         std::chrono::seconds time_to_live = {}) {
  return store.put(key, value, time_to_live, soon());
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_STORE_VALUES_H_
