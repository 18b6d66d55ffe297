// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_REFERENCE_REAL_MODEL_H_
#define INCIPIT_TESTS_REFERENCE_REAL_MODEL_H_

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "incipit/engine.h"
#include "reference/fixture.h"
#include "support/catch.h"
#include "support/run_model.h"

// A real model file against what transformers compute in float64 on its dequantised weights.

namespace incipit::test {

/// The fixture of that name where the model that it was made of is there.
inline std::optional<Fixture> fixture_of_model(const std::filesystem::path& model,
                                               const std::string& name) {
  const auto fixture =
      read_fixture(std::filesystem::path(INCIPIT_TEST_DATA) / "reference" / (name + ".bin"));
  std::error_code error;
  if (std::filesystem::file_size(model, error) == fixture.weight_bytes && !error) return fixture;
  WARN("skipped: " << model << " is not the model that the fixture was made of");
  return std::nullopt;
}

inline void check_logits_at_every_position(const std::filesystem::path& model,
                                           const Fixture& fixture) {
  ModelRunner runner(EngineOptions::reference(model));
  double worst_of_all = 0.0;
  for (const FixtureCase& expected : fixture.cases) {
    double worst = 0.0;
    std::size_t rows = 0;
    runner.run(expected.fed_ids(), [&](std::size_t position, std::span<const float> logits) {
      REQUIRE(logits.size() == fixture.vocabulary);
      worst = std::max(worst, largest_difference(fixture, expected.rows[position], logits));
      ++rows;
    });
    CAPTURE(expected.name, worst, fixture.tolerance());
    CHECK(rows == expected.rows.size());
    CHECK(worst <= static_cast<double>(fixture.tolerance()));
    worst_of_all = std::max(worst_of_all, worst);
  }
  WARN("largest difference " << worst_of_all << ", allowed " << fixture.tolerance());
}

inline void check_greedy_texts(const std::filesystem::path& model, const Fixture& fixture) {
  EngineOptions options = EngineOptions::reference(model);
  options.max_context = 1024;
  Engine engine(options);
  for (const FixtureCase& expected : fixture.cases) {
    CAPTURE(expected.name);
    const auto continuation = expected.continuation();
    REQUIRE(continuation.size() == 64);
    const GenerateResult result = engine.generate(
        expected.prompt_ids(), {.max_tokens = continuation.size(), .ignore_eos = true});
    CHECK(std::ranges::equal(result.token_ids, continuation));
  }
}

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_REFERENCE_REAL_MODEL_H_
