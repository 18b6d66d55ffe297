// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_METRIC_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_METRIC_H_

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// Of at least one value; the mean of the middle two of an even number.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// One thing, measured several times.
struct Metric {
  std::string name = {}, unit = {};
  std::vector<double> values = {};
  std::vector<double> fractions = {};  // of the machine's limit, one per value; empty: unknown
  std::string limit = {};              // which one that is: "memory" or "products"

  void add(double value, std::optional<double> fraction = {}) {
    values.push_back(value);
    if (fraction) fractions.push_back(*fraction);
  }
  double smallest() const { return *std::min_element(values.begin(), values.end()); }
  double largest() const { return *std::max_element(values.begin(), values.end()); }
  /// Of the values, as a part of their median.
  double spread() const { return (largest() - smallest()) / median(values); }
};

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_METRIC_H_
