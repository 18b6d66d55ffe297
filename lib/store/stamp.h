// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_STAMP_H_
#define INCIPIT_STORE_STAMP_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace incipit::store {

/// Clocks of two machines may differ by so much; a time further ahead is no time.
inline constexpr std::chrono::seconds kClockSlack{60};
/// A longer life is cut to this one, and a value that claims one has expired.
inline constexpr std::chrono::seconds kLongestLife{366 * 86400};

/// A value's life on a disk, as it is written there: little-endian, seconds since 1970. A wall
/// clock may jump, so what cannot be true counts as expired.
struct Stamp {
  std::uint64_t created = 0;
  std::uint64_t expires = 0;  // 0: lives until it is evicted

  /// `time_to_live` >= 0.
  static Stamp of(std::int64_t now, std::chrono::seconds time_to_live) noexcept {
    Stamp stamp{static_cast<std::uint64_t>(now), 0};
    if (time_to_live != std::chrono::seconds(0)) {
      const auto life = std::min(time_to_live, kLongestLife).count();
      stamp.expires = stamp.created + static_cast<std::uint64_t>(life);
    }
    return stamp;
  }
  bool has_expired(std::int64_t now) const noexcept {
    if (expires == 0) return false;
    const auto time = static_cast<std::uint64_t>(now);
    return time >= expires || created > time + kClockSlack.count() || expires < created ||
           expires - created > kLongestLife.count();
  }
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_STAMP_H_
