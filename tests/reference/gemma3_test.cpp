// SPDX-License-Identifier: Apache-2.0
// Gemma 3 270M (Q4_K_M) against what transformers compute in float64 on the same dequantised
// weights, over prompts of which the last is longer than the model's sliding window.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "incipit/engine.h"
#include "reference/fixture.h"
#include "reference/tiny_fixtures.h"
#include "support/catch.h"
#include "support/run_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

const std::filesystem::path kModel = INCIPIT_TEST_GEMMA;

// The fixture where the model that it was made of is there.
std::optional<Fixture> fixture_of_model() {
  const auto fixture = read_fixture(reference_data() / "gemma3.bin");
  std::error_code error;
  if (std::filesystem::file_size(kModel, error) == fixture.weight_bytes && !error) return fixture;
  WARN("skipped: " << kModel << " is not the Gemma 3 that the fixture was made of");
  return std::nullopt;
}

}  // namespace

TEST_CASE("reference mode has Gemma 3's logits at every position") {
  const auto fixture = fixture_of_model();
  if (!fixture) return;
  ModelRunner runner(EngineOptions::reference(kModel));
  double worst_of_all = 0.0;
  for (const FixtureCase& expected : fixture->cases) {
    CAPTURE(expected.name);
    double worst = 0.0;
    std::size_t rows = 0;
    runner.run(expected.fed_ids(), [&](std::size_t position, std::span<const float> logits) {
      REQUIRE(logits.size() == fixture->vocabulary);
      worst = std::max(worst, largest_difference(*fixture, expected.rows[position], logits));
      ++rows;
    });
    CHECK(rows == expected.rows.size());
    CHECK(worst <= static_cast<double>(fixture->tolerance()));
    worst_of_all = std::max(worst_of_all, worst);
  }
  WARN("largest difference " << worst_of_all << ", allowed " << fixture->tolerance());
}

TEST_CASE("reference mode continues greedily as Gemma 3 does, past its window too") {
  const auto fixture = fixture_of_model();
  if (!fixture) return;
  EngineOptions options = EngineOptions::reference(kModel);
  options.max_context = 1024;
  Engine engine(options);
  for (const FixtureCase& expected : fixture->cases) {
    CAPTURE(expected.name);
    const auto continuation = expected.continuation();
    REQUIRE(continuation.size() == 64);
    const GenerateResult result = engine.generate_with_cache(
        expected.prompt_ids(), {.max_tokens = continuation.size(), .ignore_eos = true});
    CHECK(std::ranges::equal(result.token_ids, continuation));
  }
}
