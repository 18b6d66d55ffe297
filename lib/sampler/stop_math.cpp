// SPDX-License-Identifier: Apache-2.0
#include "sampler/stop_math.h"

#include <array>

namespace incipit::sampler {
namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

std::uint64_t probability_units(double probability) {
  // Exact but for the rounding: a multiplication by a power of two.
  return static_cast<std::uint64_t>(probability * (1U << kProbabilityBits));
}

bool is_certified(std::size_t leader, std::size_t runner_up, std::size_t rank,
                  std::uint64_t alpha) noexcept {
  if (leader <= runner_up) return false;  // E <= 1 there, and less than 3
  if (leader > kMaxCertifiedVotes || leader + runner_up > kMaxCertifiedVotes) return false;
  const auto n = static_cast<Wide>(leader + runner_up);
  Wide sum = 0;       // of C(n + 1, k), at most 2^103
  Wide binomial = 1;  // C(n + 1, k); times n + 1 it has at most 2^110
  for (std::size_t k = 0; k <= leader; ++k) {
    sum += binomial;
    binomial = binomial * (n + 1 - k) / (k + 1);
  }
  // binomial = C(n + 1, a + 1) = (n + 1) / (a + 1) C(n, a), so (n + 1) C(n, a) = (a + 1) binomial.
  // Compared are  2 alpha 2^24 sum  and  3 r (r + 1) (a + 1) binomial 2^24;
  // the left side has less than 2^(1 + 24 + 103) = 2^128.
  const Wide left = 2 * static_cast<Wide>(alpha) * sum;
  Wide right = 3;
  const std::array<Wide, 5> factors = {static_cast<Wide>(rank), static_cast<Wide>(rank) + 1,
                                       static_cast<Wide>(leader) + 1, binomial,
                                       Wide{1} << kProbabilityBits};
  for (const Wide factor : factors) {
    // Too large for 128 bits is larger than the left side.
    if (__builtin_mul_overflow(right, factor, &right)) return false;
  }
  return left >= right;
}

bool is_settled(std::size_t leader, std::size_t runner_up, std::size_t remaining,
                std::uint64_t epsilon) noexcept {
  if (runner_up + remaining < leader) return true;
  if (leader < runner_up) return false;
  const std::size_t a = leader, b = runner_up, r = remaining;
  // P(x + 1) / P(x) = up(x) / down(x); both have at most 42 bits.
  const auto up = [&](std::size_t x) { return static_cast<Wide>(b + x + 1) * (r - x); };
  const auto down = [&](std::size_t x) { return static_cast<Wide>(x + 1) * (a + r - x); };
  std::size_t mode = 0;
  while (mode < r && up(mode) > down(mode)) ++mode;

  const std::size_t first_flip = (r + a - b + 1) / 2;
  constexpr Wide kOne = Wide{1} << 62;  // P(mode); all terms are relative to it
  Wide all = 0, flipped = 0;
  const auto add = [&](std::size_t x, Wide term) {
    all += term;
    if (x >= first_flip) flipped += term;
  };
  add(mode, kOne);
  Wide term = kOne;
  for (std::size_t x = mode; x < r && term != 0; ++x) {
    term = term * up(x) / down(x);
    add(x + 1, term);
  }
  term = kOne;
  for (std::size_t x = mode; x > 0 && term != 0; --x) {
    term = term * down(x - 1) / up(x - 1);
    add(x - 1, term);
  }
  // Sums have less than 2^83.
  return (flipped << kProbabilityBits) <= all * epsilon;
}

}  // namespace incipit::sampler
