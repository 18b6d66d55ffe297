// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_WEIGHT_H_
#define INCIPIT_SAMPLER_WEIGHT_H_

#include <cstdint>
#include <span>

#include "incipit/self_consistency.h"

// Weights and log-probabilities as whole numbers, so that sums do not depend on their order and
// votes rank the same on every machine.

namespace incipit::sampler {

/// The weight of a vote in whole units: 1 is the most that a vote can weigh.
inline constexpr std::uint64_t kFullWeight = 1U << 16;

/// Log-probabilities are whole multiples of 2^-20, and at least -2^20.
inline constexpr std::int64_t kLogprobUnit = 1 << 20;

/// The mean of log-probabilities in kLogprobUnit, rounded towards 0; none is above 0. The lowest
/// there is for an empty span, and for what is no number.
std::int64_t mean_logprob_units(std::span<const float> logprobs) noexcept;

/// kFullWeight * exp(mean / temperature), at least 1. `mean` as above, the temperature from 0.01 to
/// 100. Rounded down, and less than 2 away from the exact value.
std::uint64_t confidence_weight(std::int64_t mean, double temperature) noexcept;

/// What the vote of a sample weighs.
std::uint64_t vote_weight(const SelfConsistencyOptions& options,
                          std::span<const float> logprobs) noexcept;

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_WEIGHT_H_
