// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_STOP_RULE_H_
#define INCIPIT_SAMPLER_STOP_RULE_H_

#include <cstddef>

#include "incipit/self_consistency.h"
#include "sampler/tally.h"

namespace incipit::sampler {

/// Whether the rule lets sampling stop while `remaining` samples have not been counted. With none
/// left only Certified has something to say: whether the answer is certified.
bool may_stop(const StopRule& rule, const Standing& standing, std::size_t remaining);

/// The fewest further samples after which the rule may stop, if all vote for the leader with full
/// weight; `remaining` where even that would not do. O(remaining log remaining).
std::size_t votes_needed(const StopRule& rule, const Standing& standing, std::size_t remaining);

/// How many samples to have under way. The first `needed` of them are worth it in any case. Another
/// one adds `row_cost` to each step, and saves a round of its own where those before it turn out
/// not to be enough; the leader gets each vote with its share so far (Laplace's rule).
std::size_t wave_size(std::size_t needed, const Standing& standing, std::size_t remaining,
                      double row_cost);

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_STOP_RULE_H_
