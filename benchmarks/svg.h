// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_SVG_H_
#define INCIPIT_BENCHMARKS_SVG_H_

#include <iomanip>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace bench {

/// Parts of a chart as SVG. Lengths are in pixels, from the upper left corner.
class Svg {
 public:
  struct Point {
    double x = 0, y = 0;
  };

  Svg(double width, double height, std::string_view title) {
    out_ << std::fixed << std::setprecision(1)
         << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\""
         << height << "\" font-family=\"sans-serif\" font-size=\"12\">\n"
         << "<rect width=\"" << width << "\" height=\"" << height << "\" fill=\"#fff\"/>\n";
    text({10, 22}, title, "font-size=\"15\" font-weight=\"bold\"");
  }

  /// `more`: attributes.
  void text(Point at, std::string_view words, std::string_view more = "") {
    out_ << "<text x=\"" << at.x << "\" y=\"" << at.y << "\" " << more << ">" << words
         << "</text>\n";
  }

  /// A line of the grid.
  void rule(Point from, Point to) {
    out_ << "<line x1=\"" << from.x << "\" y1=\"" << from.y << "\" x2=\"" << to.x << "\" y2=\""
         << to.y << "\" stroke=\"#ddd\"/>\n";
  }

  /// Values of one kind, joined by lines.
  void curve(std::span<const Point> points, std::string_view colour, int radius) {
    out_ << "<polyline fill=\"none\" stroke=\"" << colour << "\" stroke-width=\"2\" points=\"";
    for (const Point& at : points) out_ << at.x << "," << at.y << " ";
    out_ << "\"/>\n";
    for (const Point& at : points) {
      out_ << "<circle cx=\"" << at.x << "\" cy=\"" << at.y << "\" r=\"" << radius << "\" fill=\""
           << colour << "\"/>\n";
    }
  }

  /// What a colour stands for, under the title.
  void legend(double x, std::string_view colour, std::string_view words) {
    out_ << "<rect x=\"" << x << "\" y=\"36\" width=\"12\" height=\"12\" fill=\"" << colour
         << "\"/>\n";
    text({x + 17, 46}, words);
  }

  /// The whole picture.
  std::string finish() {
    out_ << "</svg>\n";
    return out_.str();
  }

 private:
  std::ostringstream out_;
};

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_SVG_H_
