// SPDX-License-Identifier: Apache-2.0
#include "sampler/weight.h"

#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.h"

using namespace incipit;
using namespace incipit::sampler;

namespace {

std::int64_t units(double mean) { return static_cast<std::int64_t>(mean * kLogprobUnit); }

}  // namespace

TEST_CASE("the mean of log-probabilities in whole units") {
  CHECK(mean_logprob_units(std::vector<float>{-1.0f}) == -kLogprobUnit);
  CHECK(mean_logprob_units(std::vector<float>{-1.0f, -2.0f}) == -kLogprobUnit * 3 / 2);
  CHECK(mean_logprob_units(std::vector<float>{0.0f}) == 0);
  CHECK(mean_logprob_units(std::vector<float>{1e-7f}) == 0);  // rounding may exceed 0
  const std::int64_t lowest = -kLogprobUnit * kLogprobUnit;
  CHECK(mean_logprob_units({}) == lowest);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(mean_logprob_units(std::vector<float>{-kInfinity}) == lowest);
  CHECK(mean_logprob_units(std::vector<float>{std::nanf("")}) == lowest);
  CHECK(mean_logprob_units(std::vector<float>{-kInfinity, 0.0f}) == lowest / 2);
}

TEST_CASE("confidence weights are exponentials in whole units") {
  CHECK(confidence_weight(0, 1.0) == kFullWeight);
  for (const double temperature : {0.01, 0.07, 0.5, 0.7, 1.0, 3.0, 99.9}) {
    std::uint64_t last = kFullWeight;
    for (double mean = 0.0; mean > -6.0; mean -= 0.01) {
      const double expected =
          std::exp(static_cast<double>(units(mean)) / kLogprobUnit / temperature) * kFullWeight;
      const std::uint64_t weight = confidence_weight(units(mean), temperature);
      CAPTURE(mean, temperature, expected);
      REQUIRE(std::abs(static_cast<double>(weight) - expected) <= 1.0 + expected * 1e-5);
      REQUIRE(weight <= last);
      last = weight;
    }
  }
  CHECK(confidence_weight(units(-30.0), 1.0) == 1);  // a vote always has some weight
  CHECK(confidence_weight(units(-40.0), 1.0) == 1);
  CHECK(confidence_weight(-kLogprobUnit * kLogprobUnit, 0.01) == 1);
  CHECK(confidence_weight(-kLogprobUnit * kLogprobUnit, 100.0) == 1);
  CHECK(confidence_weight(units(-1.0), 100.0) == Approx(kFullWeight * 0.99005).epsilon(1e-4));
}

TEST_CASE("a vote weighs what the options say") {
  SelfConsistencyOptions options;
  const std::vector<float> logprobs = {-4.0f, -4.0f, -1.0f, -1.0f};
  CHECK(vote_weight(options, logprobs) == kFullWeight);
  CHECK(vote_weight(options, {}) == kFullWeight);
  options.weighting = Weighting::kMeanLogprob;
  CHECK(vote_weight(options, logprobs) == confidence_weight(units(-2.5), 1.0));
  options.weight_temperature = 0.5;
  CHECK(vote_weight(options, logprobs) == confidence_weight(units(-2.5), 0.5));
  CHECK(vote_weight(options, {}) == 1);
  options.weighting = Weighting::kTail;
  options.tail_tokens = 2;
  CHECK(vote_weight(options, logprobs) == confidence_weight(units(-1.0), 0.5));
  options.tail_tokens = 5;
  CHECK(vote_weight(options, logprobs) == confidence_weight(units(-2.5), 0.5));
}
