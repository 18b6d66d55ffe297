// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_STOP_MATH_H_
#define INCIPIT_SAMPLER_STOP_MATH_H_

#include <cstddef>
#include <cstdint>

// The arithmetic of the stop rules, in integers alone: the same decision on every machine. The
// derivations are in docs/self_consistency.md.

namespace incipit::sampler {

/// Probabilities are whole multiples of 2^-24.
inline constexpr int kProbabilityBits = 24;

/// A probability in [0, 1], rounded down.
std::uint64_t probability_units(double probability);

/// Votes of leader and runner-up together from which on is_certified() knows no answer but false:
/// its integers would take more than 128 bits.
inline constexpr std::size_t kMaxCertifiedVotes = 102;

/// Whether E(a, b) >= 3 r (r + 1) / (2 alpha) with
///
///   E(a, b) = sum of C(n + 1, k) for k = 0 to a / ((n + 1) C(n, a)),   n = a + b:
///
/// `leader` votes for the answer that came up as the r-th different one (`rank`, from 1), and
/// `runner_up` votes for the best of the others. `alpha` in probability_units(). O(n).
bool is_certified(std::size_t leader, std::size_t runner_up, std::size_t rank,
                  std::uint64_t alpha) noexcept;

/// Whether the runner-up draws level or wins with a probability of `epsilon` (probability_units())
/// at most when `remaining` votes follow, each for one of the two, under a uniform prior:
///
///   P(X = x) = C(b + x, x) C(a + R - x, R - x) / C(a + b + R + 1, R),   2 X >= R + a - b.
///
/// Counts are at most 2^20. In fixed point; the relative error is below 2^-30. O(remaining).
bool is_settled(std::size_t leader, std::size_t runner_up, std::size_t remaining,
                std::uint64_t epsilon) noexcept;

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_STOP_MATH_H_
