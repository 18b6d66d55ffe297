// SPDX-License-Identifier: Apache-2.0
#include "store/circuit_breaker.h"

#include <algorithm>

#include "base/philox.h"

namespace incipit::store {

std::optional<CircuitBreaker::Ticket> CircuitBreaker::admit(Time now) noexcept {
  if (!open_) return Ticket{generation_, false};
  if (probing_ || now < retry_at_) return std::nullopt;
  probing_ = true;
  return Ticket{generation_, true};
}

void CircuitBreaker::succeeded(Ticket ticket) noexcept {
  // A call from before the breaker opened says nothing about now.
  if (ticket.generation != generation_) return;
  if (ticket.probe) {
    open_ = probing_ = false;
    back_offs_ = 0;
  }
  failures_ = 0;
}

void CircuitBreaker::failed(Ticket ticket, Time now, bool hopeless) noexcept {
  if (ticket.generation != generation_) return;
  if (ticket.probe) {
    probing_ = false;
    open(now);
    return;
  }
  if (++failures_ < options_.failures_to_open && !hopeless) return;
  failures_ = 0;
  ++generation_;
  open(now);
}

void CircuitBreaker::open(Time now) noexcept {
  const auto longest = std::chrono::duration<double>(options_.longest_back_off);
  const auto doubled = std::chrono::duration<double>(options_.first_back_off) *
                       static_cast<double>(1u << back_offs_);
  if (back_offs_ < 20) ++back_offs_;
  // Between half of it and all, so that many processes do not come back at the same moment.
  const std::uint32_t random = base::philox4x32(
      {static_cast<std::uint32_t>(openings_), static_cast<std::uint32_t>(openings_ >> 32), 0, 0},
      {static_cast<std::uint32_t>(options_.seed),
       static_cast<std::uint32_t>(options_.seed >> 32)})[0];
  ++openings_;
  const double share = 0.5 + 0.5 * static_cast<double>(random) / 4294967296.0;
  open_ = true;
  retry_at_ = now + std::chrono::duration_cast<Time::duration>(std::min(doubled, longest) * share);
}

}  // namespace incipit::store
