// SPDX-License-Identifier: Apache-2.0
#include "engine/generate_params.h"

#include <cmath>
#include <string>

#include "base/check.h"

namespace incipit::inline v0 {

std::string_view to_string(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kEnd:
      return "end";
    case FinishReason::kMaxTokens:
      return "max_tokens";
    case FinishReason::kStopString:
      return "stop_string";
    case FinishReason::kStopped:
      return "stopped";
    case FinishReason::kTimeout:
      return "timeout";
    case FinishReason::kContextFull:
      return "context_full";
  }
  return "unknown";
}

}  // namespace incipit::inline v0

namespace incipit::engine {
namespace {

void require(bool condition, const std::string& what) {
  if (!condition) base::throw_error(ErrorCode::kInvalidArgument, "GenerateParams::" + what);
}

}  // namespace

void check_params(const GenerateParams& params, std::size_t vocabulary) {
  require(std::isfinite(params.temperature) && params.temperature >= 0.0f,
          "temperature must be 0 (greedy) or a positive number");
  require(params.top_k >= 0, "top_k must be 0 (all) or positive");
  require(params.top_p > 0.0f && params.top_p <= 1.0f, "top_p must be above 0 and at most 1");
  require(params.min_p >= 0.0f && params.min_p <= 1.0f, "min_p must be between 0 and 1");
  require(std::isfinite(params.repetition_penalty) && params.repetition_penalty > 0.0f,
          "repetition_penalty must be a positive number (1: none)");
  for (const auto& [token, bias] : params.logit_bias) {
    require(token >= 0 && static_cast<std::size_t>(token) < vocabulary,
            "logit_bias names the id " + std::to_string(token) +
                ", which the vocabulary does not have");
    require(!std::isnan(bias), "logit_bias must not be NaN");
  }
  for (const std::string& stop : params.stop_strings) {
    require(!stop.empty(), "stop_strings must not contain an empty string");
  }
  require(params.kv_noise >= 0.0f && params.kv_noise <= 1.0f, "kv_noise must be between 0 and 1");
  require(params.logprobs <= vocabulary, "logprobs must not exceed the size of the vocabulary");
  require(!params.timeout || params.timeout->count() >= 0, "timeout must not be negative");
}

}  // namespace incipit::engine
