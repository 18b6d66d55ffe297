// SPDX-License-Identifier: Apache-2.0
#include "cpu/scalar/exp.h"

#include <cmath>
#include <limits>

#include "support/catch.h"

using namespace incipit::cpu;

TEST_CASE("rounding is to nearest, ties to even") {
  CHECK(scalar::round_to_even(0.5f) == 0.0f);
  CHECK(scalar::round_to_even(1.5f) == 2.0f);
  CHECK(scalar::round_to_even(-0.5f) == 0.0f);
  CHECK(scalar::round_to_even(-1.5f) == -2.0f);
  CHECK(scalar::round_to_even(2.49f) == 2.0f);
  CHECK(scalar::round_to_even(-126.51f) == -127.0f);
  CHECK(scalar::round_to_even(4194303.0f) == 4194303.0f);
}

TEST_CASE("exp is right to 2e-7 over its whole range") {
  double worst = 0.0;
  for (int i = -86999; i <= 87999; ++i) {
    const float x = static_cast<float>(i) * 1e-3f;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(scalar::exp(x)) - exact) / exact);
  }
  CHECK(worst < 2e-7);
}

TEST_CASE("exp at and beyond its ends") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(scalar::exp(0.0f) == 1.0f);
  CHECK(scalar::exp(-0.0f) == 1.0f);
  CHECK(scalar::exp(-87.0f) > 0.0f);
  CHECK(scalar::exp(std::nextafter(-87.0f, -100.0f)) == 0.0f);
  CHECK(scalar::exp(-infinity) == 0.0f);
  CHECK(scalar::exp(88.5f) == scalar::exp(88.0f));
  CHECK(scalar::exp(infinity) == scalar::exp(88.0f));
  CHECK(std::isfinite(scalar::exp(infinity)));
  CHECK(std::isnan(scalar::exp(std::nanf(""))));
}
