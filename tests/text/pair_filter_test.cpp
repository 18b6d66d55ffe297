// SPDX-License-Identifier: Apache-2.0
#include "text/pair_filter.h"

#include "support/catch.h"

namespace incipit::text {
namespace {

TEST_CASE("no pair is ever missed, and few are claimed too many") {
  PairFilter filter(2000);
  const auto inserted = [](std::uint32_t i) { return i % 5 == 0; };
  for (std::uint32_t i = 0; i < 10000; ++i) {
    if (inserted(i)) filter.insert(i, i / 7);
  }
  int wrong = 0;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    const bool found = filter.may_hold(i, i / 7);
    if (inserted(i)) {
      if (!found) FAIL_CHECK(i);
    } else {
      wrong += found ? 1 : 0;
    }
  }
  CHECK(wrong < 1600);  // about one in eight of 8,000
}

TEST_CASE("an empty filter holds nothing") { CHECK_FALSE(PairFilter(0).may_hold('a', 'b')); }

}  // namespace
}  // namespace incipit::text
