// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"

#include "support/catch.h"

namespace incipit::base {
namespace {

TEST_CASE("a check that holds does nothing and evaluates once") {
  int calls = 0;
  INCIPIT_CHECK(++calls == 1);
  CHECK(calls == 1);
}

TEST_CASE("a check that fails throws kInternal with the condition and the place") {
  const int one = 1;
  try {
    INCIPIT_CHECK(one == 2);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInternal);
    CHECK_THAT(error.what(), Catch::Contains("one == 2") && Catch::Contains("check_test.cpp"));
  }
}

TEST_CASE("throw_error carries code and message") {
  try {
    throw_error(ErrorCode::kForked, "made before fork()");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kForked);
    CHECK(error.what() == std::string("made before fork()"));
  }
}

}  // namespace
}  // namespace incipit::base
