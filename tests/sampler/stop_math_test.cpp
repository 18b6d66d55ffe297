// SPDX-License-Identifier: Apache-2.0
#include "sampler/stop_math.h"

#include <cmath>
#include <vector>

#include "support/catch.h"

using namespace incipit::sampler;

namespace {

double choose(std::size_t n, std::size_t k) {
  double value = 1.0;
  for (std::size_t i = 1; i <= k; ++i) {
    value = value * static_cast<double>(n - k + i) / static_cast<double>(i);
  }
  return value;
}

/// E(a, b) as the likelihood ratio that it is: the mean over p in (1/2, 1] of p^a (1 - p)^b 2^n, by
/// Simpson's rule.
double mixture(std::size_t a, std::size_t b) {
  constexpr int kSteps = 20'000;  // of [1/2, 1]
  double sum = 0.0;
  for (int i = 0; i <= kSteps; ++i) {
    const double p = 0.5 + 0.5 * i / kSteps;
    const double weight = i == 0 || i == kSteps ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
    sum += weight * std::pow(2.0 * p, static_cast<double>(a)) *
           std::pow(2.0 * (1.0 - p), static_cast<double>(b));
  }
  return sum / (3.0 * kSteps);
}

double e_value(std::size_t a, std::size_t b) {
  const std::size_t n = a + b;
  double sum = 0.0;
  for (std::size_t k = 0; k <= a; ++k) sum += choose(n + 1, k);
  return sum / (static_cast<double>(n + 1) * choose(n, a));
}

/// P(2 X >= R + a - b) as is_settled() documents it.
double flip_probability(std::size_t a, std::size_t b, std::size_t r) {
  double flipped = 0.0, all = 0.0;
  for (std::size_t x = 0; x <= r; ++x) {
    const double p = choose(b + x, x) * choose(a + r - x, r - x);
    all += p;
    if (2 * x + b >= r + a) flipped += p;
  }
  return flipped / all;
}

std::size_t unanimous_votes(double alpha, std::size_t rank) {
  std::size_t votes = 0;
  while (!is_certified(votes, 0, rank, probability_units(alpha))) ++votes;
  return votes;
}

}  // namespace

TEST_CASE("probabilities are rounded down to units") {
  CHECK(probability_units(0.0) == 0);
  CHECK(probability_units(1.0) == 1U << 24);
  CHECK(probability_units(0.5) == 1U << 23);
  CHECK(probability_units(0.05) == 838860);
  CHECK(probability_units(1e-6) == 16);
}

TEST_CASE("the e-value is the likelihood ratio of the uniform mixture above one half") {
  for (std::size_t a = 0; a <= 30; a += 3) {
    for (std::size_t b = 0; b <= 12; b += 2) {
      CAPTURE(a, b);
      CHECK(e_value(a, b) == Approx(mixture(a, b)).epsilon(1e-6));
      // It falls with each vote for another answer, so the runner-up is the one to look at.
      CHECK(e_value(a, b + 1) < e_value(a, b));
      CHECK(e_value(a + 1, b) > e_value(a, b));
    }
  }
  // When an answer first comes up behind b votes of the true mode, E is (b + 3) / ((b + 1)(b + 2)).
  for (std::size_t b = 0; b <= 20; ++b) {
    const auto d = static_cast<double>(b);
    CHECK(e_value(1, b) == Approx((d + 3.0) / ((d + 1.0) * (d + 2.0))));
  }
}

TEST_CASE("votes that certify when all agree: 6, 7, 9 and 11") {
  CHECK(unanimous_votes(0.2, 1) == 6);
  CHECK(unanimous_votes(0.1, 1) == 7);
  CHECK(unanimous_votes(0.05, 1) == 9);
  CHECK(unanimous_votes(0.01, 1) == 11);
  CHECK(unanimous_votes(0.05, 2) == 10);  // a late leader needs more
  CHECK(unanimous_votes(0.05, 40) > 18);
  CHECK(unanimous_votes(1e-6, 1) < 30);
}

TEST_CASE("the integers decide as the formula does") {
  for (const double alpha : {0.5, 0.2, 0.05, 0.01, 1e-4, 1e-6}) {
    const std::uint64_t units = probability_units(alpha);
    const double floor = static_cast<double>(units) / (1U << 24);
    for (std::size_t rank = 1; rank <= 6; ++rank) {
      for (std::size_t a = 0; a <= 102; a += a < 20 ? 1 : 3) {
        for (std::size_t b = 0; a + b <= 102; ++b) {
          const auto r = static_cast<double>(rank);
          const double ratio = e_value(a, b) / (3.0 * r * (r + 1.0) / (2.0 * floor));
          if (std::abs(ratio - 1.0) < 1e-9) continue;  // doubles do not tell
          if (is_certified(a, b, rank, units) != (ratio >= 1.0)) {
            FAIL("a " << a << ", b " << b << ", rank " << rank << ", alpha " << alpha);
          }
        }
      }
    }
  }
}

TEST_CASE("beyond 128 bits nothing is certified") {
  const std::uint64_t alpha = probability_units(0.05);
  CHECK(is_certified(102, 0, 1, alpha));
  CHECK_FALSE(is_certified(103, 0, 1, alpha));
  CHECK_FALSE(is_certified(100, 3, 1, alpha));
  CHECK_FALSE(is_certified(static_cast<std::size_t>(-1), 2, 1, alpha));
  CHECK(is_certified(102, 0, 4096, alpha));
  CHECK_FALSE(is_certified(50, 0, static_cast<std::size_t>(-2), alpha));
  CHECK_FALSE(is_certified(0, 0, 0, alpha));
  CHECK_FALSE(is_certified(51, 51, 1, alpha));
  CHECK_FALSE(is_certified(102, 0, 1, 0));
  CHECK_FALSE(is_certified(3, 5, 1, alpha));
}

TEST_CASE("settled is what the Beta-binomial says") {
  for (const double epsilon : {0.5, 0.1, 0.01, 1e-3, 1e-6}) {
    const std::uint64_t units = probability_units(epsilon);
    const double floor = static_cast<double>(units) / (1U << 24);
    for (std::size_t a = 0; a <= 24; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        for (const std::size_t r : std::vector<std::size_t>{0, 1, 2, 3, 5, 8, 16, 17, 40, 100}) {
          const double probability = flip_probability(a, b, r);
          if (std::abs(probability - floor) < 1e-9 * floor) continue;
          if (is_settled(a, b, r, units) != (probability <= floor)) {
            FAIL("a " << a << ", b " << b << ", r " << r << ", epsilon " << epsilon << ": "
                      << probability);
          }
        }
      }
    }
  }
}

TEST_CASE("settled at the ends") {
  const std::uint64_t epsilon = probability_units(0.01);
  CHECK(is_settled(1, 0, 0, epsilon));
  CHECK_FALSE(is_settled(1, 1, 0, epsilon));  // a tie
  CHECK_FALSE(is_settled(0, 0, 0, epsilon));
  CHECK_FALSE(is_settled(0, 0, 16, epsilon));
  CHECK_FALSE(is_settled(1, 2, 16, epsilon));
  CHECK(is_settled(1'000'000, 0, 1'000'000, epsilon));
  CHECK_FALSE(is_settled(500'000, 499'000, 1'000'000, epsilon));
  CHECK(is_settled(600'000, 400'000, 1'000'000, epsilon));
  CHECK(is_settled(5, 0, 11, epsilon));
  CHECK_FALSE(is_settled(4, 0, 12, epsilon));
}
