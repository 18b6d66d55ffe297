// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cache_history.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

TEST_CASE("a million steps", "[.]") {
  for (std::uint64_t seed = 1000; seed < 1500; ++seed) {
    CAPTURE(seed);
    CacheHistory history(seed);
    for (int i = 0; i < 2000; ++i) {
      CAPTURE(i);
      history.step();
    }
    history.end();
    CHECK(history.stats().blocks_in_use == 0);
  }
}

}  // namespace
}  // namespace incipit::test
