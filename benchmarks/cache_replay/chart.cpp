// SPDX-License-Identifier: Apache-2.0
#include "chart.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iterator>
#include <set>
#include <sstream>

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

void text(std::ostream& out, double x, double y, const std::string& words, const char* more = "") {
  out << "<text x=\"" << x << "\" y=\"" << y << "\" " << more << ">" << words << "</text>\n";
}

void grid(std::ostream& out, const Axes& axes, const std::vector<ReplayResult>& results) {
  for (int tenths = 0; tenths <= std::lround(10 * axes.highest); ++tenths) {
    const double y = axes.y(0.1 * tenths);
    out << "<line x1=\"" << kLeft << "\" y1=\"" << y << "\" x2=\"" << kLeft + kWidth << "\" y2=\""
        << y << "\" stroke=\"#ddd\"/>\n";
    text(out, kLeft - 8, y + 4, std::to_string(10 * tenths) + " %", "text-anchor=\"end\"");
  }
  std::set<std::size_t> capacities;
  for (const ReplayResult& result : results) capacities.insert(result.blocks);
  for (const std::size_t blocks : capacities) {
    text(out, axes.x(blocks), kTop + kHeight + 20, std::to_string(blocks),
         "text-anchor=\"middle\"");
  }
  text(out, kLeft + kWidth / 2, kTop + kHeight + 42, "blocks of 16 tokens",
       "text-anchor=\"middle\"");
}

void line(std::ostream& out, const Axes& axes, const std::vector<ReplayResult>& points,
          const char* colour) {
  out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\" points=\"";
  for (const ReplayResult& at : points) {
    out << axes.x(at.blocks) << "," << axes.y(at.hit_ratio()) << " ";
  }
  out << "\"/>\n";
  for (const ReplayResult& at : points) {
    out << "<circle cx=\"" << axes.x(at.blocks) << "\" cy=\"" << axes.y(at.hit_ratio())
        << "\" r=\"3\" fill=\"" << colour << "\"/>\n";
  }
}

}  // namespace

std::string chart(const std::vector<ReplayResult>& results) {
  const Axes axes(results);
  std::ostringstream out;
  const double width = kLeft + kWidth + 40, height = kTop + kHeight + 60;
  out << std::fixed << std::setprecision(1) << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""
      << width << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"" << width << "\" height=\"" << height << "\" fill=\"#fff\"/>\n";
  text(out, 10, 22, "Prompt tokens reused", "font-size=\"15\" font-weight=\"bold\"");
  grid(out, axes, results);
  double legend = kLeft;
  for (std::size_t i = 0; i < std::size(kPolicies); ++i) {
    std::vector<ReplayResult> points;
    std::copy_if(results.begin(), results.end(), std::back_inserter(points),
                 [&](const ReplayResult& result) { return result.policy == kPolicies[i].name; });
    if (points.empty()) continue;
    std::sort(points.begin(), points.end(),
              [](const ReplayResult& a, const ReplayResult& b) { return a.blocks < b.blocks; });
    line(out, axes, points, kColours[i]);
    out << "<rect x=\"" << legend << "\" y=\"36\" width=\"12\" height=\"12\" fill=\"" << kColours[i]
        << "\"/>\n";
    text(out, legend + 17, 46, kPolicies[i].name);
    legend += 80;
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace bench
