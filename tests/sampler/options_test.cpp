// SPDX-License-Identifier: Apache-2.0
#include "sampler/options.h"

#include <functional>
#include <limits>
#include <vector>

#include "incipit/error.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::sampler;

namespace {

bool accepts(const std::function<void(SelfConsistencyOptions&)>& change) {
  SelfConsistencyOptions options;
  change(options);
  try {
    check(options);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidArgument);
    return false;
  }
  return true;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

}  // namespace

TEST_CASE("options within their ranges are accepted, others are not") {
  using Options = SelfConsistencyOptions;
  CHECK(accepts([](Options&) {}));
  CHECK(accepts([](Options& o) { o.samples = 1; }));
  CHECK(accepts([](Options& o) { o.samples = 4096; }));
  CHECK_FALSE(accepts([](Options& o) { o.samples = 0; }));
  CHECK_FALSE(accepts([](Options& o) { o.samples = 4097; }));
  for (const double rate : {1e-6, 0.5}) {
    CHECK(accepts([&](Options& o) { o.stop = stop::Certified{rate}; }));
    CHECK(accepts([&](Options& o) { o.stop = stop::Horizon{rate}; }));
  }
  for (const double rate : {0.0, 0.6, -1.0, static_cast<double>(kNan)}) {
    CHECK_FALSE(accepts([&](Options& o) { o.stop = stop::Certified{rate}; }));
    CHECK_FALSE(accepts([&](Options& o) { o.stop = stop::Horizon{rate}; }));
  }
  CHECK(accepts([](Options& o) { o.temperatures = {0.0f, 1000.0f}; }));
  CHECK_FALSE(accepts([](Options& o) { o.temperatures = {1.0f, -0.1f}; }));
  CHECK_FALSE(accepts([](Options& o) { o.temperatures = {kNan}; }));
  CHECK_FALSE(accepts([](Options& o) { o.top_ps = {0.0f}; }));
  CHECK_FALSE(accepts([](Options& o) { o.top_ps = {1.1f}; }));
  CHECK_FALSE(accepts([](Options& o) { o.weight_temperature = 0.0; }));
  CHECK_FALSE(accepts([](Options& o) { o.tail_tokens = 0; }));
  CHECK_FALSE(accepts([](Options& o) { o.row_cost = -0.1; }));
}

TEST_CASE("a certificate needs whole votes of one distribution") {
  using Options = SelfConsistencyOptions;
  const auto certified = [](Options& o) { o.stop = stop::Certified{}; };
  CHECK(accepts([&](Options& o) { certified(o), o.temperatures = {0.7f, 0.7f}; }));
  CHECK(accepts([&](Options& o) { certified(o), o.seeds = {1, 2, 3}; }));
  CHECK_FALSE(accepts([&](Options& o) { certified(o), o.temperatures = {0.7f, 0.8f}; }));
  CHECK_FALSE(accepts([&](Options& o) { certified(o), o.top_ps = {0.9f, 1.0f}; }));
  CHECK_FALSE(accepts([&](Options& o) { certified(o), o.weighting = Weighting::kTail; }));
  CHECK(accepts([](Options& o) { o.weighting = Weighting::kTail; }));
}

TEST_CASE("scores go with all samples") {
  using Options = SelfConsistencyOptions;
  const auto scored = [](Options& o) { o.score = [](const Sample&) { return 0.0; }; };
  CHECK_FALSE(accepts([&](Options& o) { scored(o); }));
  CHECK(accepts([&](Options& o) { scored(o), o.stop = stop::None{}; }));
}

TEST_CASE("calls take no on_text, and make a token at least") {
  GenerateParams params;
  CHECK_NOTHROW(check(params));
  params.on_text = [](std::string_view) { return true; };
  CHECK_THROWS_AS(check(params), Error);
  params.on_text = {};
  params.max_tokens = 0;
  CHECK_THROWS_AS(check(params), Error);
}

TEST_CASE("sample i is asked for by its number alone") {
  SelfConsistencyOptions options;
  GenerateParams params;
  params.seed = 5;
  params.sample = 100;
  params.top_p = 0.9f;
  params.on_prefill = [](std::size_t, std::size_t) {};
  CHECK(params_of_sample(options, params, 3).sample == 103);
  CHECK(params_of_sample(options, params, 3).seed == 5);
  CHECK(params_of_sample(options, params, 3).top_p == 0.9f);
  CHECK(params_of_sample(options, params, 3).temperature == 0.8f);  // greedy would be no vote
  CHECK(params_of_sample(options, params, 3).logprobs == 1);
  CHECK_FALSE(params_of_sample(options, params, 0).on_prefill);
  params.temperature = 1.25f;
  params.logprobs = 7;
  CHECK(params_of_sample(options, params, 0).temperature == 1.25f);
  CHECK(params_of_sample(options, params, 0).logprobs == 7);
  options.temperatures = {0.5f, 0.0f};
  options.top_ps = {0.7f, 0.8f, 0.95f};
  options.seeds = {11, 12};
  CHECK(params_of_sample(options, params, 0).temperature == 0.5f);
  CHECK(params_of_sample(options, params, 3).temperature == 0.0f);  // as asked
  CHECK(params_of_sample(options, params, 4).top_p == 0.8f);
  CHECK(params_of_sample(options, params, 3).seed == 12);
}
