// SPDX-License-Identifier: Apache-2.0
// SmolLM2-135M-Instruct against what transformers compute in float64 on the same dequantised
// weights.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "incipit/engine.h"
#include "reference/fixture.h"
#include "support/catch.h"
#include "support/run_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

const std::filesystem::path kModel = INCIPIT_TEST_MODEL;

// In the default mode, how much less likely than the best token the chosen one may be.
constexpr double kAllowedRegret = 0.1;

// The fixture where the model that it was made of is there.
std::optional<Fixture> fixture_of_model() {
  const auto fixture =
      read_fixture(std::filesystem::path(INCIPIT_TEST_DATA) / "reference" / "smollm2.bin");
  std::error_code error;
  if (std::filesystem::file_size(kModel, error) == fixture.weight_bytes && !error) return fixture;
  WARN("skipped: " << kModel << " is not the model that the fixture was made of");
  return std::nullopt;
}

TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

TEST_CASE("reference mode has the logits of transformers at every position") {
  const auto fixture = fixture_of_model();
  if (!fixture) return;
  ModelRunner runner(EngineOptions::reference(kModel));
  double worst_of_all = 0.0;
  for (const FixtureCase& expected : fixture->cases) {
    double worst = 0.0;
    std::size_t rows = 0;
    runner.run(expected.fed_ids(), [&](std::size_t position, std::span<const float> logits) {
      REQUIRE(logits.size() == fixture->vocabulary);
      worst = std::max(worst, largest_difference(*fixture, expected.rows[position], logits));
      ++rows;
    });
    CAPTURE(expected.name, worst, fixture->tolerance());
    CHECK(rows == expected.rows.size());
    CHECK(worst <= static_cast<double>(fixture->tolerance()));
    worst_of_all = std::max(worst_of_all, worst);
  }
  WARN("largest difference " << worst_of_all << ", allowed " << fixture->tolerance());
}

TEST_CASE("reference mode continues greedily as transformers do") {
  const auto fixture = fixture_of_model();
  if (!fixture) return;
  Engine engine(EngineOptions::reference(kModel));
  for (const FixtureCase& expected : fixture->cases) {
    CAPTURE(expected.name);
    const auto continuation = expected.continuation();
    REQUIRE(continuation.size() == 64);
    const GenerateResult result = engine.generate(
        expected.prompt_ids(), {.max_tokens = continuation.size(), .ignore_eos = true});
    CHECK(std::ranges::equal(result.token_ids, continuation));
  }
}

TEST_CASE("the default mode, fed the reference's tokens, chooses a token about as likely") {
  const auto fixture = fixture_of_model();
  if (!fixture) return;
  ModelRunner runner({.model = kModel});
  double worst_regret = 0.0;
  std::size_t changed = 0, positions = 0;
  for (const FixtureCase& expected : fixture->cases) {
    runner.run(expected.fed_ids(), [&](std::size_t position, std::span<const float> logits) {
      const FixtureRow& row = expected.rows[position];
      const std::optional<std::size_t> rank = row.rank(likeliest(logits));
      CAPTURE(expected.name, position);
      REQUIRE(rank.has_value());
      const double regret = static_cast<double>(row.top[0]) - static_cast<double>(row.top[*rank]);
      CHECK(regret <= kAllowedRegret);
      worst_regret = std::max(worst_regret, regret);
      if (*rank != 0) ++changed;
      ++positions;
    });
  }
  WARN("another token at " << changed << " of " << positions << " positions, at most "
                           << worst_regret << " less likely");
}
