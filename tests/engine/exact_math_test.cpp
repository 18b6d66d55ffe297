// SPDX-License-Identifier: Apache-2.0
#include "engine/exact_math.h"

#include <cmath>
#include <random>

#include "support/catch.h"

using incipit::engine::exact_exp;
using incipit::engine::exact_log;
using incipit::engine::relative_weight;

TEST_CASE("exact_exp agrees with exp") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> wide(-690.0, 690.0), narrow(-30.0, 0.0);
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 == 0 ? wide(random) : narrow(random);
    worst = std::max(worst, std::abs(exact_exp(x) / std::exp(x) - 1.0));
  }
  CHECK(worst < 1e-15);
  CHECK(exact_exp(0.0) == 1.0);
  CHECK(exact_exp(-701.0) == 0.0);
  CHECK(exact_exp(-HUGE_VAL) == 0.0);
  CHECK(exact_exp(std::nan("")) == 0.0);
}

TEST_CASE("relative_weight agrees with exp as far as floats can") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<float> any(-28.5f, 0.0f), near(-1.0f, 0.0f);
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const float x = i % 2 == 0 ? any(random) : near(random);
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(relative_weight(x)) / expected - 1.0));
  }
  CHECK(worst < 4e-7);
  CHECK(relative_weight(0.0f) == 1.0f);
  CHECK(relative_weight(-28.5f) < 0x1p-40f);
  CHECK(relative_weight(-80.0f) > 0.0f);
}

TEST_CASE("exact_log agrees with log") {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> exponent(-600.0, 600.0), near(0.5, 2.0);
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 == 0 ? std::exp2(exponent(random)) : near(random);
    const double expected = std::log(x);
    worst = std::max(worst, std::abs(exact_log(x) - expected) / std::max(1e-3, std::abs(expected)));
  }
  CHECK(worst < 2e-13);
  CHECK(exact_log(1.0) == 0.0);
}
