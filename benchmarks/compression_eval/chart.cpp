// SPDX-License-Identifier: Apache-2.0
#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "benchmarks/svg.h"
#include "memory.h"

namespace bench {
namespace {

constexpr double kLeft = 60, kTop = 64, kWidth = 640, kHeight = 320;
constexpr std::array<const char*, 5> kColours{"#4477aa", "#228833", "#ccbb44", "#ee6677",
                                              "#aa3377"};
static_assert(kColours.size() == kPolicies.size());

/// Powers of ten around all values.
struct Axis {
  double first = 1e9, last = 0;

  explicit Axis(const std::vector<Result>& results) {
    for (const Result& result : results) {
      const double value = std::max(1.0, result.totals.prefilled_per_turn());
      first = std::min(first, std::floor(std::log10(value)));
      last = std::max(last, std::ceil(std::log10(value)));
    }
    last = std::max(last, first + 1);
  }
  double x(double tokens) const {
    return kLeft + kWidth * (std::log10(std::max(1.0, tokens)) - first) / (last - first);
  }
};

double y(double recall) { return kTop + kHeight * (1 - recall); }

void grid(Svg& svg, const Axis& axis) {
  for (int fifths = 0; fifths <= 5; ++fifths) {
    const double at = y(0.2 * fifths);
    svg.rule({kLeft, at}, {kLeft + kWidth, at});
    svg.text({kLeft - 8, at + 4}, std::to_string(20 * fifths) + " %", "text-anchor=\"end\"");
  }
  for (double power = axis.first; power <= axis.last; ++power) {
    const double at = axis.x(std::pow(10.0, power));
    svg.rule({at, kTop}, {at, kTop + kHeight});
    svg.text({at, kTop + kHeight + 20}, std::to_string(std::lround(std::pow(10.0, power))),
             "text-anchor=\"middle\"");
  }
  svg.text({kLeft + kWidth / 2, kTop + kHeight + 42}, "prefilled tokens per turn",
           "text-anchor=\"middle\"");
}

void line(Svg& svg, const Axis& axis, const std::vector<Result>& results, const char* colour) {
  std::vector<Svg::Point> points;
  for (const Result& at : results) {
    points.push_back({axis.x(at.totals.prefilled_per_turn()), y(at.totals.evidence_recall())});
  }
  svg.curve(points, colour, 4);
  for (std::size_t i = 0; i < points.size(); ++i) {
    svg.text({points[i].x + 6, points[i].y - 6}, std::to_string(results[i].budget),
             "font-size=\"10\"");
  }
}

}  // namespace

std::string recall_chart(const std::vector<Result>& results) {
  const Axis axis(results);
  Svg svg(kLeft + kWidth + 50, kTop + kHeight + 60, "Evidence recalled, by budget");
  grid(svg, axis);
  double legend = kLeft;
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    std::vector<Result> points;
    std::copy_if(results.begin(), results.end(), std::back_inserter(points),
                 [&](const Result& result) { return result.policy == kPolicies[i]; });
    if (points.empty()) continue;
    std::sort(points.begin(), points.end(),
              [](const Result& a, const Result& b) { return a.budget < b.budget; });
    line(svg, axis, points, kColours[i]);
    svg.legend(legend, kColours[i], kPolicies[i]);
    legend += 30 + 7.0 * static_cast<double>(kPolicies[i].size());
  }
  return svg.finish();
}

}  // namespace bench
