// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_KV_SEALED_RECORDS_H_
#define INCIPIT_TESTS_KV_SEALED_RECORDS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kv/sealer.h"
#include "store/clock.h"

namespace incipit::test {

using ByteVector = std::vector<std::byte>;

/// A wall clock and a steady one that tests move; copies show the same time. The steady one is an
/// hour ahead of the real one, so that no store misses a deadline by it.
class FakeClock {
 public:
  kv::WallSeconds wall() const { return 1'800'000'000 + *milliseconds_ / 1000; }
  store::SteadyClock steady() const {
    const auto begin = std::chrono::steady_clock::now() + std::chrono::hours(1);
    return [begin, now = milliseconds_] { return begin + std::chrono::milliseconds(*now); };
  }
  void move(std::int64_t seconds) { *milliseconds_ += 1000 * seconds; }
  void move_milliseconds(std::int64_t count) { *milliseconds_ += count; }

 private:
  std::shared_ptr<std::atomic<std::int64_t>> milliseconds_ =
      std::make_shared<std::atomic<std::int64_t>>(0);
};

/// Whether records are encrypted is what most tests of records run with both ways.
inline kv::SealerOptions sealer_options(bool encrypted, FakeClock clock = {},
                                        std::byte key = std::byte{7}, std::uint32_t key_epoch = 1) {
  kv::SealerOptions options;
  options.key_epoch = key_epoch;
  options.now = [clock] { return clock.wall(); };
  if (encrypted) options.key = [key](std::uint32_t) { return ByteVector(32, key); };
  return options;
}

inline StoreBuffer buffer_of(std::span<const std::byte> bytes) {
  StoreBuffer buffer;
  std::ranges::copy(bytes, buffer.resize(bytes.size()).begin());
  return buffer;
}

inline ByteVector sealed(const kv::Sealer& sealer, kv::RecordKind kind, const StoreKey& name,
                         std::span<const std::byte> body, std::chrono::seconds time_to_live = {}) {
  StoreBuffer record;
  std::ranges::copy(body, kv::Sealer::make_room(record, body.size()).begin());
  sealer.seal(record, kind, name, time_to_live);
  const auto bytes = record.bytes();
  return {bytes.begin(), bytes.end()};
}

inline std::optional<ByteVector> opened(const kv::Sealer& sealer, kv::RecordKind kind,
                                        const StoreKey& name, std::span<const std::byte> record) {
  StoreBuffer buffer = buffer_of(record);
  const auto body = sealer.open(buffer, kind, name);
  if (!body) return std::nullopt;
  return ByteVector(body->begin(), body->end());
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_KV_SEALED_RECORDS_H_
