// SPDX-License-Identifier: Apache-2.0
#include "chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "benchmarks/svg.h"

namespace bench {
namespace {

constexpr double kLeft = 60, kTop = 64, kWidth = 560, kHeight = 300;
constexpr const char* kColours[] = {"#4477aa", "#228833", "#ccbb44", "#ee6677"};
static_assert(std::size(kColours) == std::size(kPolicies));

/// Where values lie in the picture.
struct Axes {
  double first, last;  // logarithms of the capacities
  double highest;      // hit ratio, a tenth's multiple

  explicit Axes(const std::vector<ReplayResult>& results) {
    const auto [least, most] = std::minmax_element(
        results.begin(), results.end(),
        [](const ReplayResult& a, const ReplayResult& b) { return a.blocks < b.blocks; });
    first = std::log(static_cast<double>(least->blocks));
    last = std::log(static_cast<double>(most->blocks));
    highest = 0.1;
    for (const ReplayResult& result : results) {
      highest = std::max(highest, 0.1 * std::ceil(10 * result.hit_ratio()));
    }
  }
  double x(std::size_t blocks) const {
    const double at = std::log(static_cast<double>(blocks));
    return kLeft + kWidth * (last > first ? (at - first) / (last - first) : 0.5);
  }
  double y(double ratio) const { return kTop + kHeight * (1 - ratio / highest); }
};

void grid(Svg& svg, const Axes& axes, const std::vector<ReplayResult>& results) {
  for (int tenths = 0; tenths <= std::lround(10 * axes.highest); ++tenths) {
    const double y = axes.y(0.1 * tenths);
    svg.rule({kLeft, y}, {kLeft + kWidth, y});
    svg.text({kLeft - 8, y + 4}, std::to_string(10 * tenths) + " %", "text-anchor=\"end\"");
  }
  std::set<std::size_t> capacities;
  for (const ReplayResult& result : results) capacities.insert(result.blocks);
  for (const std::size_t blocks : capacities) {
    svg.text({axes.x(blocks), kTop + kHeight + 20}, std::to_string(blocks),
             "text-anchor=\"middle\"");
  }
  svg.text({kLeft + kWidth / 2, kTop + kHeight + 42}, "blocks of 16 tokens",
           "text-anchor=\"middle\"");
}

void line(Svg& svg, const Axes& axes, const std::vector<ReplayResult>& results,
          const char* colour) {
  std::vector<Svg::Point> points;
  for (const ReplayResult& at : results) {
    points.push_back({axes.x(at.blocks), axes.y(at.hit_ratio())});
  }
  svg.curve(points, colour, 3);
}

}  // namespace

std::string chart(const std::vector<ReplayResult>& results) {
  const Axes axes(results);
  Svg svg(kLeft + kWidth + 40, kTop + kHeight + 60, "Prompt tokens reused");
  grid(svg, axes, results);
  double legend = kLeft;
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    std::vector<ReplayResult> points;
    std::copy_if(results.begin(), results.end(), std::back_inserter(points),
                 [&](const ReplayResult& result) { return result.policy == kPolicies[i].name; });
    if (points.empty()) continue;
    std::sort(points.begin(), points.end(),
              [](const ReplayResult& a, const ReplayResult& b) { return a.blocks < b.blocks; });
    line(svg, axes, points, kColours[i]);
    svg.legend(legend, kColours[i], kPolicies[i].name);
    legend += 80;
  }
  return svg.finish();
}

}  // namespace bench
