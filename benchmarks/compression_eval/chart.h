// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CHART_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CHART_H_

#include <string>
#include <vector>

#include "replay.h"

namespace bench {

/// SVG: evidence recall by prefilled tokens per turn (logarithmic), a line per policy along its
/// budgets. Takes at least one result.
std::string recall_chart(const std::vector<Result>& results);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CHART_H_
