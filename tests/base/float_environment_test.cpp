// SPDX-License-Identifier: Apache-2.0
#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/machine.h"
#include "support/catch.h"

namespace incipit::base {
namespace {

// Rounded at run time, in whatever environment is in force.
float third() {
  volatile float one = 1.0f, three = 3.0f;
  return one / three;
}

TEST_CASE("rounding is to nearest inside, and the host's again outside") {
  const float nearest = third();
  REQUIRE(std::fesetround(FE_DOWNWARD) == 0);
  const float host = third();
  float inside = 0, nested = 0;
  int rounding_inside = -1;
  {
    const ScopedFloatEnvironment scope;
    inside = third();
    rounding_inside = std::fegetround();
    const ScopedFloatEnvironment again;
    nested = third();
  }
  const int rounding_after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  CHECK(host != nearest);
  CHECK(inside == nearest);
  CHECK(nested == nearest);
  CHECK(rounding_inside == FE_TONEAREST);
  CHECK(rounding_after == FE_DOWNWARD);
}

TEST_CASE("the host's exception flags come back") {
  std::feclearexcept(FE_ALL_EXCEPT);
  std::feraiseexcept(FE_OVERFLOW);
  {
    const ScopedFloatEnvironment scope;
    CHECK(third() > 0);  // inexact
  }
  CHECK(std::fetestexcept(FE_ALL_EXCEPT) == FE_OVERFLOW);
  std::feclearexcept(FE_ALL_EXCEPT);
}

#if defined(__x86_64__)
TEST_CASE("subnormals are kept inside though the host flushes them") {
  constexpr unsigned kFlush = 0x8040;  // FTZ and DAZ
  const unsigned before = _mm_getcsr();
  volatile float tiny = 0x1p-140f, half = 0.5f;
  _mm_setcsr(before | kFlush);
  const float host = tiny * half;
  float inside = 0;
  {
    const ScopedFloatEnvironment scope;
    inside = tiny * half;
  }
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK(host == 0.0f);
  CHECK(inside == 0x1p-141f);
  CHECK((after & kFlush) == kFlush);
}
#endif

}  // namespace
}  // namespace incipit::base
