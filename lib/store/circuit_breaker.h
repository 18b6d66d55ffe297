// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_STORE_CIRCUIT_BREAKER_H_
#define INCIPIT_STORE_CIRCUIT_BREAKER_H_

#include <chrono>
#include <cstdint>
#include <optional>

namespace incipit::store {

struct BreakerOptions {
  unsigned failures_to_open = 3;                  // in a row
  std::chrono::milliseconds first_back_off{250};  // doubles with each probe that fails
  std::chrono::milliseconds longest_back_off{30000};
  std::uint64_t seed = 0;  // of the jitter: give each process and store its own
};

/// Keeps calls away from a service that fails, and finds out when it is back: closed, then open for
/// a while, then one call as a probe. Knows no clock: the caller tells the time. Not thread-safe.
class CircuitBreaker {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Proof that a call may be made; to be handed back with its outcome.
  struct Ticket {
    std::uint64_t generation = 0;
    bool probe = false;
  };

  explicit CircuitBreaker(const BreakerOptions& options) noexcept : options_(options) {}

  /// Asks for a call; none while it is open.
  std::optional<Ticket> admit(Time now) noexcept;
  void succeeded(Ticket ticket) noexcept;
  /// `hopeless`: one such failure is enough.
  void failed(Ticket ticket, Time now, bool hopeless) noexcept;

  bool is_open() const noexcept { return open_; }
  /// How often it opened out of the closed state.
  std::uint64_t generation() const noexcept { return generation_; }

 private:
  void open(Time now) noexcept;

  BreakerOptions options_;
  bool open_ = false;
  bool probing_ = false;        // a probe is on its way
  unsigned failures_ = 0;       // in a row while closed
  unsigned back_offs_ = 0;      // in a row while open
  std::uint64_t openings_ = 0;  // ever, those after a failed probe too: the jitter's counter
  std::uint64_t generation_ = 0;
  Time retry_at_ = {};
};

}  // namespace incipit::store

#endif  // INCIPIT_STORE_CIRCUIT_BREAKER_H_
