// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CUDA_LOGITS_DIFFERENCE_H_
#define INCIPIT_TESTS_CUDA_LOGITS_DIFFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace incipit::test {

/// How far apart two devices are, row of logits by row.
class LogitsDifference {
 public:
  void add(std::span<const float> a, std::span<const float> b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      const double difference = std::abs(x - y);
      worst_ = std::isnan(difference) ? HUGE_VAL : std::max(worst_, difference);
      largest_ = std::max(largest_, std::abs(x));
    }
    const auto likeliest = [](std::span<const float> row) {
      return std::max_element(row.begin(), row.end()) - row.begin();
    };
    if (likeliest(a) != likeliest(b)) ++other_likeliest_;
  }

  /// The largest difference, as a share of the largest logit of the first; infinite with a NaN.
  double worst() const noexcept { return worst_ / largest_; }
  /// Rows whose likeliest token is another.
  std::size_t other_likeliest() const noexcept { return other_likeliest_; }

 private:
  double worst_ = 0.0, largest_ = 0.0;
  std::size_t other_likeliest_ = 0;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_CUDA_LOGITS_DIFFERENCE_H_
