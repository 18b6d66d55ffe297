// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cache_history.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

TEST_CASE("after any history the cache is what the model says, and every sequence has its KV") {
  std::uint64_t evictions = 0, reused = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    CacheHistory history(seed);
    for (int i = 0; i < 300; ++i) {
      CAPTURE(i);
      history.step();
    }
    history.end();
    CHECK(history.stats().blocks_in_use == 0);
    evictions += history.stats().evictions;
    reused += history.stats().tokens_reused;
  }
  // That it happened at all.
  CHECK(evictions > 200);
  CHECK(reused > 5'000);
}

}  // namespace
}  // namespace incipit::test
