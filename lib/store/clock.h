// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_CLOCK_H_
#define INCIPIT_STORE_CLOCK_H_

#include <chrono>
#include <functional>

namespace incipit::store {

/// Clocks that tests replace. Empty: the system's.
using SteadyClock = std::function<std::chrono::steady_clock::time_point()>;
using WallClock = std::function<std::chrono::system_clock::time_point()>;

inline std::chrono::steady_clock::time_point now(const SteadyClock& clock) {
  return clock ? clock() : std::chrono::steady_clock::now();
}

inline std::chrono::system_clock::time_point now(const WallClock& clock) {
  return clock ? clock() : std::chrono::system_clock::now();
}

}  // namespace incipit::store

#endif  // INCIPIT_STORE_CLOCK_H_
