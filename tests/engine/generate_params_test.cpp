// SPDX-License-Identifier: Apache-2.0
#include "engine/generate_params.h"

#include <cmath>
#include <functional>

#include "incipit/error.h"
#include "support/catch.h"

using namespace incipit;

TEST_CASE("parameters without a meaning are refused by name") {
  const std::vector<std::pair<std::string, std::function<void(GenerateParams&)>>> faults = {
      {"temperature", [](auto& p) { p.temperature = -0.1f; }},
      {"temperature", [](auto& p) { p.temperature = std::nanf(""); }},
      {"temperature", [](auto& p) { p.temperature = HUGE_VALF; }},
      {"top_k", [](auto& p) { p.top_k = -1; }},
      {"top_p", [](auto& p) { p.top_p = 0.0f; }},
      {"top_p", [](auto& p) { p.top_p = 1.1f; }},
      {"top_p", [](auto& p) { p.top_p = std::nanf(""); }},
      {"min_p", [](auto& p) { p.min_p = -0.1f; }},
      {"min_p", [](auto& p) { p.min_p = 1.1f; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0.0f; }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{100, 1.0f}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias",
       [](auto& p) {
         p.logit_bias = {{1, std::nanf("")}};
       }},
      {"stop_strings",
       [](auto& p) {
         p.stop_strings = {"a", ""};
       }},
      {"logprobs", [](auto& p) { p.logprobs = 101; }},
      {"timeout", [](auto& p) { p.timeout = std::chrono::milliseconds(-1); }},
  };
  for (const auto& [field, spoil] : faults) {
    GenerateParams params;
    engine::check_params(params, 100);
    spoil(params);
    try {
      engine::check_params(params, 100);
      FAIL(field << " was accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK(std::string(error.what()).find(field) != std::string::npos);
    }
  }
}

TEST_CASE("finish reasons have the names of the enumerators") {
  CHECK(to_string(FinishReason::kEnd) == "end");
  CHECK(to_string(FinishReason::kMaxTokens) == "max_tokens");
  CHECK(to_string(FinishReason::kStopString) == "stop_string");
  CHECK(to_string(FinishReason::kStopped) == "stopped");
  CHECK(to_string(FinishReason::kTimeout) == "timeout");
  CHECK(to_string(FinishReason::kContextFull) == "context_full");
}
