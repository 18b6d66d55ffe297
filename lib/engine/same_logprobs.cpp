// SPDX-License-Identifier: Apache-2.0
#include "engine/same_logprobs.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "engine/exact_math.h"

namespace incipit::engine {
namespace {

constexpr double kTolerance = 0.05;

double probability(const TokenLogprob& token) {
  return exact_exp(static_cast<double>(token.logprob));
}

}  // namespace

bool same_bits(std::span<const TokenLogprob> a, std::span<const TokenLogprob> b) noexcept {
  return std::ranges::equal(a, b, [](const TokenLogprob& x, const TokenLogprob& y) {
    return x.id == y.id &&
           std::bit_cast<std::uint32_t>(x.logprob) == std::bit_cast<std::uint32_t>(y.logprob);
  });
}

bool about_equal(std::span<const TokenLogprob> a, std::span<const TokenLogprob> b) {
  INCIPIT_CHECK(a.size() == b.size());
  std::vector<double> difference(a.size());  // by token
  for (const TokenLogprob& token : a) {
    difference[static_cast<std::size_t>(token.id)] = probability(token);
  }
  double moved = 0.0;  // counted where it is missing and where it has gone
  for (const TokenLogprob& token : b) {
    const double d = difference[static_cast<std::size_t>(token.id)] - probability(token);
    moved += d > 0.0 ? d : -d;
  }
  return moved / 2.0 <= kTolerance;
}

}  // namespace incipit::engine
