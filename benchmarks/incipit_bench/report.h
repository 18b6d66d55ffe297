// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_REPORT_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_REPORT_H_

#include <incipit/engine.h>

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metric.h"
#include "yardstick.h"

namespace bench {

using Json = nlohmann::ordered_json;

/// The machine, what it can do at best, and the model: for people.
void print_head(std::ostream& out, const incipit::Engine& engine, const Yardstick& yardstick);
/// One line: median, smallest and largest value, fraction of the limit.
void print(std::ostream& out, const Metric& metric);

/// The members `machine` and `model` of every document.
Json head_json(const std::string& file, const incipit::Engine& engine, const Yardstick& yardstick);
/// The member `results`: by name of the metric.
Json results_json(const std::vector<Metric>& metrics);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_REPORT_H_
