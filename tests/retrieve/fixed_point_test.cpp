// SPDX-License-Identifier: Apache-2.0
#include "retrieve/fixed_point.h"

#include <cmath>

#include "support/catch.h"

using namespace incipit::retrieve;

TEST_CASE("log2 of powers of two is exact, of others to 1/32768") {
  static_assert(log2_fixed(1) == 0 && log2_fixed(2) == kFixedOne);
  CHECK(log2_fixed(std::uint64_t{1} << 63) == 63 * kFixedOne);
  double worst = 0;
  for (std::uint64_t x = 1; x < std::uint64_t{1} << 50; x += x / 97 + 1) {
    const double exact = std::log2(static_cast<double>(x)) * 65536;
    worst = std::max(worst, std::abs(exact - log2_fixed(x)));
  }
  CHECK(worst < 2);
}

TEST_CASE("square roots are rounded down") {
  static_assert(square_root(0) == 0 && square_root(15) == 3 && square_root(16) == 4);
  bool good = true;
  for (std::uint64_t root = 1; root < std::uint64_t{1} << 32; root += root / 7 + 1) {
    good = good && square_root(root * root) == root && square_root(root * root - 1) == root - 1;
  }
  CHECK(good);
  CHECK(square_root(UINT64_MAX) == UINT32_MAX);
}
