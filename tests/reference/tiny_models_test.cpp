// SPDX-License-Identifier: Apache-2.0
// The whole chain, from a model that transformers wrote, or a GGUF file of the same weights, to
// logits and greedy text, against what transformers compute in float64 from the former.
#include <algorithm>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "reference/fixture.h"
#include "reference/tiny_fixtures.h"
#include "support/catch.h"
#include "support/run_model.h"

using namespace incipit;
using namespace incipit::test;

TEST_CASE("each family has the logits of transformers at every position, on every path") {
  for (const TinyFixture& tiny : tiny_fixtures()) {
    const Fixture fixture = read_fixture(tiny.logits);
    for (const CpuPath path : cpu_paths()) {
      EngineOptions options = EngineOptions::reference(tiny.model);
      options.cpu_path = path;
      options.threads = 1;
      ModelRunner runner(options);
      REQUIRE(runner.config().vocabulary == fixture.vocabulary);
      for (const FixtureCase& expected : fixture.cases) {
        double worst = 0.0;
        std::size_t rows = 0;
        runner.run(expected.fed_ids(), [&](std::size_t position, std::span<const float> logits) {
          worst = std::max(worst, largest_difference(fixture, expected.rows[position], logits));
          ++rows;
        });
        CAPTURE(tiny.model.string(), expected.name, static_cast<int>(path), worst);
        CHECK(rows == expected.rows.size());
        CHECK(worst <= static_cast<double>(fixture.tolerance()));
      }
    }
  }
}

TEST_CASE("each family continues greedily as transformers do, on every path") {
  for (const TinyFixture& tiny : tiny_fixtures()) {
    const Fixture fixture = read_fixture(tiny.logits);
    for (const CpuPath path : cpu_paths()) {
      EngineOptions options = EngineOptions::reference(tiny.model);
      options.cpu_path = path;
      options.threads = 1;
      Engine engine(options);
      for (const FixtureCase& expected : fixture.cases) {
        CAPTURE(tiny.model.string(), expected.name, static_cast<int>(path));
        const auto continuation = expected.continuation();
        const GenerateResult result = engine.generate(
            expected.prompt_ids(), {.max_tokens = continuation.size(), .ignore_eos = true});
        CHECK(std::ranges::equal(result.token_ids, continuation));
      }
    }
  }
}

TEST_CASE("scores and log-probabilities are those of transformers") {
  for (const TinyFixture& tiny : tiny_fixtures()) {
    const Fixture fixture = read_fixture(tiny.logits);
    const auto tolerance = 2.0f * fixture.tolerance();  // of a logit and of a log-sum-exp
    EngineOptions options = EngineOptions::reference(tiny.model);
    options.threads = 1;
    Engine engine(options);
    for (const FixtureCase& expected : fixture.cases) {
      CAPTURE(tiny.model.string(), expected.name);
      const std::size_t count = expected.continuation().size();
      const std::vector<float> scores = engine.score(expected.ids);
      const GenerateResult result = engine.generate(
          expected.prompt_ids(),
          {.max_tokens = count, .ignore_eos = true, .logprobs = expected.rows[0].top.size()});
      REQUIRE(scores.size() == expected.ids.size());
      CHECK(scores[0] == 0.0f);
      REQUIRE(result.logprobs.size() == count);
      REQUIRE(result.top.size() == count);
      for (std::size_t i = 0; i < count; ++i) {
        const FixtureRow& row = expected.rows[expected.prompt + i - 1];
        CHECK(scores[expected.prompt + i] == Approx(row.logprob(0)).margin(tolerance));
        CHECK(result.logprobs[i] == Approx(row.logprob(0)).margin(tolerance));
        REQUIRE(result.top[i].size() == row.top.size());
        for (std::size_t rank = 0; rank < row.top.size(); ++rank) {
          CHECK(result.top[i][rank].logprob == Approx(row.logprob(rank)).margin(tolerance));
        }
      }
    }
  }
}
