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

TEST_CASE("the fewest votes that certify are those of exact fractions") {
  // From integrals as fractions of unbounded integers, by parts: with n = a + b,
  //   I(a, b) = b / (a + 1) I(a + 1, b - 1) - 2^-(n + 1) / (a + 1),
  //   I(n, 0) = (1 - 2^-(n + 1)) / (n + 1),  E(a, b) = 2^(n + 1) I(a, b),
  // and of alpha as the double is. Entry b: the smallest leader against b votes; behind the last
  // one there is none with 102 votes in all.
  struct Row {
    double alpha;
    std::size_t rank;
    std::vector<std::size_t> leaders;
  };
  const std::vector<Row> rows = {
      {0.5, 1, {4,  7,  9,  12, 13, 15, 17, 19, 21, 22, 24, 25, 27, 29, 30, 32, 33, 35, 36, 38,
                39, 40, 42, 43, 45, 46, 48, 49, 50, 52, 53, 54, 56, 57, 59, 60, 61, 63, 64}},
      {0.2, 1, {6,  9,  12, 14, 16, 18, 20, 21, 23, 25, 27, 28, 30, 31, 33, 35, 36, 38, 39,
                41, 42, 44, 45, 47, 48, 50, 51, 53, 54, 55, 57, 58, 60, 61, 62, 64, 65}},
      {0.05, 1, {9,  12, 14, 17, 19, 21, 23, 25, 27, 29, 30, 32, 34, 36, 37, 39, 40, 42,
                 44, 45, 47, 48, 50, 51, 53, 54, 56, 57, 59, 60, 62, 63, 65, 66, 68}},
      {0.05, 2, {10, 14, 16, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 38, 40, 42, 44,
                 45, 47, 49, 50, 52, 53, 55, 56, 58, 60, 61, 63, 64, 66, 67, 69}},
      {0.05, 3, {12, 15, 18, 20, 23, 25, 27, 29, 31, 33, 35, 37, 38, 40, 42, 44,
                 45, 47, 49, 50, 52, 54, 55, 57, 59, 60, 62, 63, 65, 66, 68, 69}},
      {0.01, 40, {22, 26, 29, 32, 35, 38, 40, 42, 45, 47, 49, 51, 53,
                  55, 57, 59, 61, 63, 65, 67, 69, 71, 72, 74, 76}},
      {1e-4, 7, {24, 28, 31, 34, 37, 40, 42, 45, 47, 49, 52, 54,
                 56, 58, 60, 62, 64, 66, 68, 70, 72, 73, 75, 77}},
      {0x1p-20, 1, {26, 30, 33, 37, 39, 42, 45, 47, 50, 52, 54, 56,
                    59, 61, 63, 65, 67, 69, 71, 73, 75, 76, 78}},
      {0.5, 4096, {30, 34, 38, 41, 44, 47, 50, 52, 55, 57, 60,
                   62, 64, 66, 68, 71, 73, 75, 77, 79, 81}},
      {0x1p-20, 4096, {50, 55, 59, 63, 66, 69, 72, 75, 78, 81, 84, 86, 89}},
  };
  for (const Row& row : rows) {
    const std::uint64_t alpha = probability_units(row.alpha);
    for (std::size_t b = 0; b <= 60; ++b) {
      const std::size_t first = b < row.leaders.size() ? row.leaders[b] : kMaxCertifiedVotes + 1;
      for (std::size_t a = 0; a <= kMaxCertifiedVotes; ++a) {
        const bool expected = a >= first && a + b <= kMaxCertifiedVotes;
        if (is_certified(a, b, row.rank, alpha) != expected) {
          FAIL("a " << a << ", b " << b << ", rank " << row.rank << ", alpha " << row.alpha);
        }
      }
    }
  }
}

TEST_CASE("an alpha that is too small by the last bit of a double certifies nothing") {
  // The largest double below 3 r (r + 1) / (2 E(a, b)), from exact fractions.
  struct Edge {
    std::size_t leader, runner_up, rank;
    double alpha;
  };
  for (const Edge& edge : std::vector<Edge>{
           {6, 0, 1, 0x1.52a54a952a54ap-3},
           {9, 0, 1, 0x1.e0781e0781e07p-6},
           {9, 0, 2, 0x1.685a1685a1685p-4},
           {11, 0, 3, 0x1.b01b01b01b01bp-5},
           {12, 1, 1, 0x1.11400b02949adp-5},
           {20, 5, 2, 0x1.7be18c2565560p-3},
           {40, 20, 1, 0x1.5659d167d0bb5p-2},
           {66, 35, 1, 0x1.9ea445219e760p-4},
           {65, 37, 1, 0x1.08fda25408c7dp-2},
           {64, 37, 1, 0x1.4ebc1475ea81bp-2},
           {60, 10, 40, 0x1.ec52e33a5487ap-16},
           {30, 3, 7, 0x1.db890befafa1bp-11},
           {25, 0, 1, 0x1.3800004e00001p-20},
       }) {
    CAPTURE(edge.leader, edge.runner_up, edge.rank);
    const std::uint64_t below = probability_units(edge.alpha);
    CHECK_FALSE(is_certified(edge.leader, edge.runner_up, edge.rank, below));
    CHECK(is_certified(edge.leader, edge.runner_up, edge.rank, below + 1));
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
