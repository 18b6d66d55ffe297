// SPDX-License-Identifier: Apache-2.0
// SmolLM2-135M-Instruct, in reference mode and in the default one.
#include "base/machine.h"
#include "reference/real_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

const std::filesystem::path kModel = INCIPIT_TEST_MODEL;

// In the default mode, how much less likely than the best token the chosen one may be.
constexpr double kAllowedRegret = 0.1;

TokenId likeliest(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Over all positions of the fixture.
void check_regret(ModelRunner& runner, const Fixture& fixture) {
  double worst_regret = 0.0;
  std::size_t changed = 0, positions = 0;
  for (const FixtureCase& expected : fixture.cases) {
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

}  // namespace

TEST_CASE("reference mode has the logits of transformers at every position") {
  const auto fixture = fixture_of_model(kModel, "smollm2");
  if (fixture) check_logits_at_every_position(kModel, *fixture);
}

TEST_CASE("reference mode continues greedily as transformers do") {
  const auto fixture = fixture_of_model(kModel, "smollm2");
  if (fixture) check_greedy_texts(kModel, *fixture);
}

// Whether a near tie falls the other way is decided by the last bits, so each path has its own.
TEST_CASE("the default mode, fed the reference's tokens, chooses a token about as likely") {
  const auto fixture = fixture_of_model(kModel, "smollm2");
  if (!fixture) return;
  for (const CpuPath path : {CpuPath::kAuto, CpuPath::kAvx2}) {
    if (path == CpuPath::kAvx2 && !base::cpu_features().avx2) continue;
    ModelRunner runner({.model = kModel, .cpu_path = path});
    check_regret(runner, *fixture);
  }
}
