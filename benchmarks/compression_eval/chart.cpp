// SPDX-License-Identifier: Apache-2.0
#include "chart.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

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

void text(std::ostream& out, double at_x, double at_y, std::string_view words,
          std::string_view more = "") {
  out << "<text x=\"" << at_x << "\" y=\"" << at_y << "\" " << more << ">" << words << "</text>\n";
}

void rule(std::ostream& out, double x1, double y1, double x2, double y2) {
  out << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2
      << "\" stroke=\"#ddd\"/>\n";
}

void grid(std::ostream& out, const Axis& axis) {
  for (int fifths = 0; fifths <= 5; ++fifths) {
    const double at = y(0.2 * fifths);
    rule(out, kLeft, at, kLeft + kWidth, at);
    text(out, kLeft - 8, at + 4, std::to_string(20 * fifths) + " %", "text-anchor=\"end\"");
  }
  for (double power = axis.first; power <= axis.last; ++power) {
    const double at = axis.x(std::pow(10.0, power));
    rule(out, at, kTop, at, kTop + kHeight);
    text(out, at, kTop + kHeight + 20, std::to_string(std::lround(std::pow(10.0, power))),
         "text-anchor=\"middle\"");
  }
  text(out, kLeft + kWidth / 2, kTop + kHeight + 42, "prefilled tokens per turn",
       "text-anchor=\"middle\"");
}

void line(std::ostream& out, const Axis& axis, const std::vector<Result>& points,
          const char* colour) {
  out << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\" points=\"";
  for (const Result& at : points) {
    out << axis.x(at.totals.prefilled_per_turn()) << "," << y(at.totals.evidence_recall()) << " ";
  }
  out << "\"/>\n";
  for (const Result& at : points) {
    const double x = axis.x(at.totals.prefilled_per_turn());
    out << "<circle cx=\"" << x << "\" cy=\"" << y(at.totals.evidence_recall())
        << "\" r=\"4\" fill=\"" << colour << "\"/>\n";
    text(out, x + 6, y(at.totals.evidence_recall()) - 6, std::to_string(at.budget),
         "font-size=\"10\"");
  }
}

}  // namespace

std::string recall_chart(const std::vector<Result>& results) {
  const Axis axis(results);
  std::ostringstream out;
  const double width = kLeft + kWidth + 50, height = kTop + kHeight + 60;
  out << std::fixed << std::setprecision(1) << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\""
      << width << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
      << "<rect width=\"" << width << "\" height=\"" << height << "\" fill=\"#fff\"/>\n";
  text(out, 10, 22, "Evidence recalled, by budget", "font-size=\"15\" font-weight=\"bold\"");
  grid(out, axis);
  double legend = kLeft;
  for (std::size_t i = 0; i < kPolicies.size(); ++i) {
    std::vector<Result> points;
    std::copy_if(results.begin(), results.end(), std::back_inserter(points),
                 [&](const Result& result) { return result.policy == kPolicies[i]; });
    if (points.empty()) continue;
    std::sort(points.begin(), points.end(),
              [](const Result& a, const Result& b) { return a.budget < b.budget; });
    line(out, axis, points, kColours[i]);
    out << "<rect x=\"" << legend << "\" y=\"36\" width=\"12\" height=\"12\" fill=\"" << kColours[i]
        << "\"/>\n";
    text(out, legend + 17, 46, kPolicies[i]);
    legend += 30 + 7.0 * static_cast<double>(kPolicies[i].size());
  }
  out << "</svg>\n";
  return out.str();
}

}  // namespace bench
