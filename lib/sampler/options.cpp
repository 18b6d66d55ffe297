// SPDX-License-Identifier: Apache-2.0
#include "sampler/options.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/check.h"

namespace incipit::sampler {
namespace {

constexpr std::size_t kMaxSamples = 4096;
constexpr float kUsualTemperature = 0.8f;

void require(bool condition, const char* message) {
  if (!condition) base::throw_error(ErrorCode::kInvalidArgument, message);
}

bool is_error_rate(double value) { return value >= 1e-6 && value <= 0.5; }

bool all_equal(const std::vector<float>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

template <class T>
void cycle(T& value, const std::vector<T>& values, std::size_t i) {
  if (!values.empty()) value = values[i % values.size()];
}

}  // namespace

void check(const SelfConsistencyOptions& options) {
  require(options.samples >= 1 && options.samples <= kMaxSamples, "samples must be 1 to 4096");
  require(options.weight_temperature >= 0.01 && options.weight_temperature <= 100.0,
          "weight_temperature must be 0.01 to 100");
  require(options.tail_tokens >= 1, "tail_tokens must be 1 at least");
  require(options.row_cost >= 0.0 && options.row_cost <= 1.0, "row_cost must be 0 to 1");
  for (const float temperature : options.temperatures) {
    require(temperature >= 0.0f && temperature <= 1000.0f, "temperatures must be from 0 to 1000");
  }
  for (const float top_p : options.top_ps) {
    require(top_p > 0.0f && top_p <= 1.0f, "top_ps must be above 0 and at most 1");
  }
  if (const auto* horizon = std::get_if<stop::Horizon>(&options.stop)) {
    require(is_error_rate(horizon->epsilon), "the epsilon of stop::Horizon must be 1e-6 to 0.5");
  }
  if (const auto* certified = std::get_if<stop::Certified>(&options.stop)) {
    require(is_error_rate(certified->alpha), "the alpha of stop::Certified must be 1e-6 to 0.5");
    require(options.weighting == Weighting::kUniform,
            "stop::Certified counts votes; weighted ones go with stop::Lossless or stop::Horizon");
    require(all_equal(options.temperatures) && all_equal(options.top_ps),
            "stop::Certified needs samples of one distribution: one temperature and one top_p");
  }
  require(options.score == nullptr || std::holds_alternative<stop::None>(options.stop),
          "a score is compared over all samples: the stop rule must be stop::None");
}

void check(const GenerateParams& params) {
  require(params.on_text == nullptr,
          "on_text cannot tell samples apart; take the text from the sampler's events");
  require(params.max_tokens >= 1, "max_tokens must be 1 at least: samples need a text");
}

GenerateParams params_of_sample(const SelfConsistencyOptions& options, const GenerateParams& params,
                                std::size_t i) {
  GenerateParams own = params;
  own.sample = params.sample + i;
  if (own.temperature == 0.0f) own.temperature = kUsualTemperature;
  cycle(own.temperature, options.temperatures, i);
  cycle(own.top_p, options.top_ps, i);
  cycle(own.seed, options.seeds, i);
  own.logprobs = std::max<std::size_t>(params.logprobs, 1);  // ties and weights need the token's
  own.on_prefill = {};
  return own;
}

}  // namespace incipit::sampler
