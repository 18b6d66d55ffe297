// SPDX-License-Identifier: Apache-2.0
// Gemma 3 270M (Q4_K_M), over prompts of which the last is longer than the model's sliding window.
#include "reference/real_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

const std::filesystem::path kModel = INCIPIT_TEST_GEMMA;

}  // namespace

TEST_CASE("reference mode has Gemma 3's logits at every position") {
  const auto fixture = fixture_of_model(kModel, "gemma3");
  if (fixture) check_logits_at_every_position(kModel, *fixture);
}

TEST_CASE("reference mode continues greedily as Gemma 3 does, past its window too") {
  const auto fixture = fixture_of_model(kModel, "gemma3");
  if (fixture) check_greedy_texts(kModel, *fixture);
}
