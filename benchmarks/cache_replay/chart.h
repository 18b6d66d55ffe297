// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_CACHE_REPLAY_CHART_H_
#define INCIPIT_BENCHMARKS_CACHE_REPLAY_CHART_H_

#include <string>
#include <vector>

#include "replay.h"

namespace bench {

/// SVG: the share of prompt tokens that was reused, by capacity (logarithmic), a line per policy.
/// Takes at least one result.
std::string chart(const std::vector<ReplayResult>& results);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_CACHE_REPLAY_CHART_H_
