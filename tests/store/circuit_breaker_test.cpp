// SPDX-License-Identifier: Apache-2.0
#include "store/circuit_breaker.h"

#include <chrono>

#include "support/catch.h"

namespace incipit::test {
namespace {

using std::chrono::milliseconds;
using store::BreakerOptions;
using store::CircuitBreaker;

constexpr CircuitBreaker::Time kStart{std::chrono::hours(1)};

void fail_once(CircuitBreaker& breaker, CircuitBreaker::Time now, bool hopeless = false) {
  const auto ticket = breaker.admit(now);
  REQUIRE(ticket);
  breaker.failed(*ticket, now, hopeless);
}

/// Milliseconds from `now` until it admits a call, which is left open.
int back_off(CircuitBreaker& breaker, CircuitBreaker::Time now) {
  int waited = 0;
  while (!breaker.admit(now + milliseconds(waited))) ++waited;
  return waited;
}

TEST_CASE("a breaker opens after failures in a row") {
  CircuitBreaker breaker({.failures_to_open = 3});
  for (int i = 0; i < 5; ++i) {
    fail_once(breaker, kStart);
    fail_once(breaker, kStart);
    CHECK_FALSE(breaker.is_open());
    breaker.succeeded(*breaker.admit(kStart));
  }
  for (int i = 0; i < 3; ++i) fail_once(breaker, kStart);
  CHECK(breaker.is_open());
  CHECK(breaker.generation() == 1);
  CHECK_FALSE(breaker.admit(kStart));
}

TEST_CASE("a breaker opens after one hopeless failure") {
  CircuitBreaker breaker({.failures_to_open = 3});
  fail_once(breaker, kStart, true);
  CHECK(breaker.is_open());
}

TEST_CASE("an open breaker lets one probe through when its time has come") {
  CircuitBreaker breaker({.first_back_off = milliseconds(100)});
  fail_once(breaker, kStart, true);
  CHECK_FALSE(breaker.admit(kStart + milliseconds(49)));
  const auto probe = breaker.admit(kStart + milliseconds(100));
  REQUIRE(probe);
  CHECK(probe->probe);
  CHECK_FALSE(breaker.admit(kStart + milliseconds(5000)));  // one at a time
  breaker.succeeded(*probe);
  CHECK_FALSE(breaker.is_open());
  CHECK(breaker.admit(kStart + milliseconds(101)));
  CHECK(breaker.generation() == 1);
}

TEST_CASE("probes that fail double the back-off up to its limit, with jitter") {
  CircuitBreaker breaker(
      {.first_back_off = milliseconds(100), .longest_back_off = milliseconds(1000)});
  CircuitBreaker::Time now = kStart;
  auto ticket = breaker.admit(now);
  REQUIRE(ticket);
  breaker.failed(*ticket, now, true);
  bool jitters = false;
  for (int i = 0; i < 70; ++i) {
    const int full = i < 4 ? 100 << i : 1000;
    int waited = 0;
    while (!(ticket = breaker.admit(now + milliseconds(waited)))) ++waited;
    CHECK(waited >= full / 2);
    CHECK(waited <= full);
    jitters = jitters || (waited != full && waited != full / 2);
    now += milliseconds(waited);
    breaker.failed(*ticket, now, false);
    CHECK(breaker.generation() == 1);  // it was never closed in between
  }
  CHECK(jitters);
  // After a success the next back-off is a short one again.
  int waited = 0;
  while (!(ticket = breaker.admit(now + milliseconds(waited)))) ++waited;
  now += milliseconds(waited);
  breaker.succeeded(*ticket);
  fail_once(breaker, now, true);
  CHECK(breaker.generation() == 2);
  CHECK(back_off(breaker, now) <= 100);
}

TEST_CASE("jitter follows from the seed") {
  const auto with_seed = [](std::uint64_t seed) {
    CircuitBreaker breaker({.first_back_off = milliseconds(10000), .seed = seed});
    fail_once(breaker, kStart, true);
    return back_off(breaker, kStart);
  };
  CHECK(with_seed(1) == with_seed(1));
  CHECK(with_seed(1) != with_seed(2));
}

TEST_CASE("a call from before the breaker opened changes nothing") {
  CircuitBreaker breaker({.failures_to_open = 1, .first_back_off = milliseconds(100)});
  const auto early = breaker.admit(kStart);
  const auto earlier = breaker.admit(kStart);
  fail_once(breaker, kStart);
  breaker.succeeded(*early);
  CHECK(breaker.is_open());
  breaker.failed(*earlier, kStart + milliseconds(90), true);
  CHECK(breaker.generation() == 1);
  CHECK(breaker.admit(kStart + milliseconds(100)));
}

}  // namespace
}  // namespace incipit::test
