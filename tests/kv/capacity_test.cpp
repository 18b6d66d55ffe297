// SPDX-License-Identifier: Apache-2.0
#include "incipit/capacity.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

/// A model of 1,000 bytes per token that computes 100 tokens a second: a block of 16,000 bytes in
/// 0.16 s.
CapacityQuestion question(std::size_t tokens) {
  CapacityQuestion question;
  question.tokens = tokens;
  question.kv_bytes_per_token = 1000;
  question.pool_bytes = 100 * 16'000;
  question.prefill_tokens_per_second = 100.0;
  return question;
}

TEST_CASE("a prefix takes whole blocks") {
  const std::vector<std::pair<std::size_t, std::size_t>> cases = {{0, 0},  {1, 1},  {15, 1},
                                                                  {16, 1}, {17, 2}, {4096, 256}};
  for (const auto& [tokens, blocks] : cases) {
    CAPTURE(tokens);
    const CapacityPlan plan = plan_capacity(question(tokens));
    CHECK(plan.blocks == blocks);
    CHECK(plan.bytes == blocks * 16'000);
    CHECK(plan.prefixes_in_pool == (blocks == 0 ? 0 : 100 / blocks));
    CHECK(plan.compute_seconds == static_cast<double>(tokens) / 100.0);
    CHECK(plan.tiers.empty());
  }
}

TEST_CASE("a pool that is a byte short of another prefix does not hold it") {
  CapacityQuestion ask = question(160);
  ask.pool_bytes = 3 * 160'000;
  CHECK(plan_capacity(ask).prefixes_in_pool == 3);
  ask.pool_bytes -= 1;
  CHECK(plan_capacity(ask).prefixes_in_pool == 2);
  ask.pool_bytes = 159'999;
  CHECK(plan_capacity(ask).prefixes_in_pool == 0);
}

TEST_CASE("a tier pays from the first block on that comes sooner than it is computed") {
  CapacityQuestion ask = question(320);
  // A block in 0.08 s: each saves 0.08 s, so five make up for 0.4 s, and the sixth is a gain.
  ask.tiers = {{"disk", 960'000, 200'000.0, 0.4},
               {"no latency", 320'000, 200'000.0, 0.0},
               {"as slow as computing", 319'999, 100'000.0, 0.0},
               {"slower", 0, 99'999.0, 0.0},
               {"unknown", 640'000, 0.0, 0.0}};
  const CapacityPlan plan = plan_capacity(ask);
  REQUIRE(plan.tiers.size() == 5);
  CHECK(plan.tiers[0].name == "disk");
  CHECK(plan.tiers[0].prefixes == 3);
  CHECK(plan.tiers[0].load_seconds.value() == Approx(0.4 + 1.6));
  CHECK(plan.compute_seconds.value() == Approx(3.2));
  CHECK(plan.tiers[0].break_even_tokens == 6u * 16u);
  CHECK(plan.tiers[1].prefixes == 1);
  CHECK(plan.tiers[1].break_even_tokens == 16u);
  CHECK(plan.tiers[2].prefixes == 0);
  CHECK_FALSE(plan.tiers[2].break_even_tokens.has_value());
  CHECK_FALSE(plan.tiers[3].break_even_tokens.has_value());
  CHECK(plan.tiers[4].prefixes == 2);
  CHECK_FALSE(plan.tiers[4].load_seconds.has_value());
  CHECK_FALSE(plan.tiers[4].break_even_tokens.has_value());
}

TEST_CASE("at the break-even length loading is sooner, and a block below it is not") {
  for (const double latency : {0.001, 0.1, 3.0}) {
    for (const double speed : {120'000.0, 1e6, 1e9}) {
      CAPTURE(latency, speed);
      CapacityQuestion ask = question(16);
      ask.tiers = {{"tier", 0, speed, latency}};
      const std::size_t tokens = plan_capacity(ask).tiers[0].break_even_tokens.value();
      ask.tokens = tokens;
      const CapacityPlan at = plan_capacity(ask);
      CHECK(at.tiers[0].load_seconds.value() < at.compute_seconds.value());
      if (tokens == 16) continue;
      ask.tokens = tokens - 16;
      const CapacityPlan below = plan_capacity(ask);
      CHECK(below.tiers[0].load_seconds.value() >= below.compute_seconds.value());
    }
  }
}

TEST_CASE("without a speed of computing there are no times of it") {
  CapacityQuestion ask = question(320);
  ask.prefill_tokens_per_second = 0.0;
  ask.tiers = {{"disk", 0, 1e6, 0.0}};
  const CapacityPlan plan = plan_capacity(ask);
  CHECK_FALSE(plan.compute_seconds.has_value());
  CHECK(plan.tiers[0].load_seconds.has_value());
  CHECK_FALSE(plan.tiers[0].break_even_tokens.has_value());
}

TEST_CASE("a break-even length that no prompt reaches is none") {
  CapacityQuestion ask = question(1);
  ask.tiers = {{"far away", 0, 1e9, 1e300}};
  CHECK_FALSE(plan_capacity(ask).tiers[0].break_even_tokens.has_value());
}

TEST_CASE("what cannot be planned is refused") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<std::function<void(CapacityQuestion&)>> mistakes = {
      [](CapacityQuestion& ask) { ask.kv_bytes_per_token = 0; },
      [](CapacityQuestion& ask) { ask.kv_bytes_per_token = SIZE_MAX / 8; },
      [](CapacityQuestion& ask) { ask.tokens = SIZE_MAX; },
      [](CapacityQuestion& ask) { ask.prefill_tokens_per_second = -1.0; },
      [](CapacityQuestion& ask) { ask.prefill_tokens_per_second = kNan; },
      [](CapacityQuestion& ask) { ask.tiers[0].bytes_per_second = kInfinity; },
      [](CapacityQuestion& ask) { ask.tiers[0].latency_seconds = -0.1; },
      [](CapacityQuestion& ask) { ask.tiers[0].latency_seconds = kNan; }};
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    CAPTURE(i);
    CapacityQuestion ask = question(16);
    ask.tiers = {{"disk", 1, 1.0, 0.0}};
    CHECK_NOTHROW(plan_capacity(ask));
    mistakes[i](ask);
    try {
      plan_capacity(ask);
      FAIL("taken");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace incipit::test
