// SPDX-License-Identifier: Apache-2.0
#include "sampler/stop_rule.h"

#include <algorithm>
#include <vector>

#include "sampler/stop_math.h"
#include "sampler/weight.h"

namespace incipit::sampler {
namespace {

bool allows(const stop::None&, const Standing&, std::size_t) { return false; }

/// A tie could be lost, too.
bool allows(const stop::Lossless&, const Standing& standing, std::size_t remaining) {
  return remaining > 0 &&
         standing.leader_weight - standing.runner_up_weight > remaining * kFullWeight;
}

bool allows(const stop::Certified& rule, const Standing& standing, std::size_t) {
  return is_certified(standing.leader_votes, standing.runner_up_votes, standing.leader_rank,
                      probability_units(rule.alpha));
}

/// Weights count as so many votes of mean weight, rounded against stopping.
bool allows(const stop::Horizon& rule, const Standing& standing, std::size_t remaining) {
  if (remaining == 0 || standing.votes == 0) return false;
  if (allows(stop::Lossless{}, standing, remaining)) return true;
  const std::uint64_t leader = standing.leader_weight * standing.votes / standing.weight;
  const std::uint64_t runner_up =
      (standing.runner_up_weight * standing.votes + standing.weight - 1) / standing.weight;
  return is_settled(leader, runner_up, remaining, probability_units(rule.epsilon));
}

/// How many more votes for the leader a rule can make something of.
std::size_t usable_votes(const StopRule& rule, const Standing& standing) {
  if (!std::holds_alternative<stop::Certified>(rule)) return static_cast<std::size_t>(-1);
  return kMaxCertifiedVotes -
         std::min(kMaxCertifiedVotes, standing.leader_votes + standing.runner_up_votes);
}

/// The standing after `votes` more full votes for the leader; the first of all makes one.
Standing with_leader_votes(Standing standing, std::size_t votes) {
  const std::uint64_t weight = votes * kFullWeight;
  standing.votes += votes;
  standing.weight += weight;
  standing.leader_votes += votes;
  standing.leader_weight += weight;
  standing.leader_rank = std::max<std::size_t>(standing.leader_rank, 1);
  return standing;
}

}  // namespace

bool may_stop(const StopRule& rule, const Standing& standing, std::size_t remaining) {
  return std::visit([&](const auto& kind) { return allows(kind, standing, remaining); }, rule);
}

std::size_t votes_needed(const StopRule& rule, const Standing& standing, std::size_t remaining) {
  const auto may_stop_after = [&](std::size_t votes) {
    return may_stop(rule, with_leader_votes(standing, votes), remaining - votes);
  };
  // As far as they are usable, more votes for the leader and fewer to come never speak against
  // stopping, so halving finds it.
  const std::size_t most = std::min(remaining, usable_votes(rule, standing));
  std::size_t low = 1, high = most;
  while (low < high) {
    const std::size_t votes = low + (high - low) / 2;
    if (may_stop_after(votes)) {
      high = votes;
    } else {
      low = votes + 1;
    }
  }
  return high == most && !may_stop_after(most) ? remaining : high;
}

std::size_t wave_size(std::size_t needed, const Standing& standing, std::size_t remaining,
                      double row_cost) {
  // Where many are needed there is time to add some later, and no need for O(needed^2).
  constexpr std::size_t kMaxSpare = 16, kMany = 64;
  if (needed >= std::min(remaining, kMany)) return needed;
  const double share = (static_cast<double>(standing.leader_votes) + 1.0) /
                       (static_cast<double>(standing.votes) + 2.0);
  // below[k]: the probability that `size` samples have k votes for the leader, for k < needed.
  std::vector<double> below(needed, 0.0);
  if (needed > 0) below[0] = 1.0;
  std::size_t size = 0;
  const auto add_sample = [&] {
    double too_few = 0.0;
    for (std::size_t k = needed; k-- > 0;) {
      below[k] = below[k] * (1.0 - share) + (k > 0 ? below[k - 1] * share : 0.0);
      too_few += below[k];
    }
    ++size;
    return too_few;
  };
  double too_few = 1.0;
  while (size < needed) too_few = add_sample();
  while (size < std::min(remaining, needed + kMaxSpare) && too_few > row_cost) {
    too_few = add_sample();
  }
  return size;
}

}  // namespace incipit::sampler
