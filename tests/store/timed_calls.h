// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_STORE_TIMED_CALLS_H_
#define INCIPIT_TESTS_STORE_TIMED_CALLS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "incipit/store.h"
#include "store/fake_server.h"
#include "store/fake_store.h"
#include "store/store_values.h"
#include "support/catch.h"

// Calls of a store whose server may do anything: they end by their deadline. Not for threads.

namespace incipit::test {

/// What a call costs at most beyond its deadline, on a busy machine.
inline constexpr std::chrono::seconds kMargin{2};
inline constexpr std::chrono::milliseconds kAmpleTime{5000};

/// What is found is "hello", whatever the key.
inline StoreStatus get(Store& store, std::chrono::milliseconds time = kAmpleTime,
                       std::uint64_t key = 1) {
  StoreBuffer value;
  const auto start = std::chrono::steady_clock::now();
  const StoreStatus status = store.get(store_key(key), start + time, value);
  CHECK(std::chrono::steady_clock::now() - start < time + kMargin);
  if (status == StoreStatus::kOk) {
    const std::span<const std::byte> bytes = value.bytes();
    CHECK(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == "hello");
  }
  return status;
}

inline StoreStatus put(Store& store, std::size_t size = 5,
                       std::chrono::milliseconds time = kAmpleTime) {
  const auto start = std::chrono::steady_clock::now();
  const StoreStatus status =
      store.put(store_key(1), pattern(size, 1), std::chrono::seconds(0), start + time);
  CHECK(std::chrono::steady_clock::now() - start < time + kMargin);
  return status;
}

/// Whatever happened before, a server that is `well` again is used again.
inline void check_recovery(FakeServer& server, FakeServer::Script well, Store& store) {
  server.set(std::move(well));
  CHECK(get(store) == StoreStatus::kOk);
  CHECK(put(store) == StoreStatus::kOk);
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_STORE_TIMED_CALLS_H_
