// SPDX-License-Identifier: Apache-2.0
#include "sampler/weight.h"

#include <algorithm>
#include <cstddef>

namespace incipit::sampler {
namespace {

constexpr double kLowest = -1048576.0;

/// 2^32 e^(-x) for x of 2^-32 units in [0, ln 2): Taylor's series, nested.
constexpr std::uint64_t small_exp(std::uint64_t x) {
  constexpr std::uint64_t kOne = std::uint64_t{1} << 32;
  std::uint64_t sum = kOne;
  for (std::uint64_t k = 14; k >= 1; --k) sum = kOne - ((x * sum) >> 32) / k;
  return sum;
}

}  // namespace

std::int64_t mean_logprob_units(std::span<const float> logprobs) noexcept {
  if (logprobs.empty()) return -kLogprobUnit * kLogprobUnit;
  double sum = 0.0;
  for (const double value : logprobs) {
    // Also a NaN becomes the lowest.
    sum += value >= kLowest ? std::min(value, 0.0) : kLowest;
  }
  const double mean = sum / static_cast<double>(logprobs.size());
  return static_cast<std::int64_t>(mean * static_cast<double>(kLogprobUnit));
}

std::uint64_t confidence_weight(std::int64_t mean, double temperature) noexcept {
  constexpr std::uint64_t kLn2 = 2977044472;  // in 2^-32 units
  // The mean has at most 2^40 units of 2^-20, and x units of 2^-32. IEEE division is the same on
  // every machine; whatever is beyond 32 has no weight left.
  const double quotient = static_cast<double>(-mean) / temperature;
  if (quotient >= 32.0 * static_cast<double>(kLogprobUnit)) return 1;
  const auto x = static_cast<std::uint64_t>(quotient * 4096.0);
  const std::uint64_t weight = (small_exp(x % kLn2) >> (x / kLn2)) >> 16;
  return std::max<std::uint64_t>(weight, 1);
}

std::uint64_t vote_weight(const SelfConsistencyOptions& options,
                          std::span<const float> logprobs) noexcept {
  if (options.weighting == Weighting::kUniform) return kFullWeight;
  if (options.weighting == Weighting::kTail && logprobs.size() > options.tail_tokens) {
    logprobs = logprobs.last(options.tail_tokens);
  }
  return confidence_weight(mean_logprob_units(logprobs), options.weight_temperature);
}

}  // namespace incipit::sampler
