// SPDX-License-Identifier: Apache-2.0
// What integer activations cost in quality: next-token distributions of SmolLM2 against those of
// float activations, over English, code and Chinese.
#include <cmath>
#include <filesystem>
#include <vector>

#include "incipit/engine.h"
#include "reference/fixture.h"
#include "support/catch.h"
#include "support/run_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

const std::filesystem::path kModel = INCIPIT_TEST_MODEL;

// What llama.cpp, with 8 bits throughout, was measured to have on the same file.
constexpr double kAllowedDivergence = 0.0031;
constexpr double kAllowedPerplexity = 0.005;  // relative

/// Log-probabilities of one position in double precision.
std::vector<double> log_softmax(std::span<const float> logits) {
  double most = static_cast<double>(logits[0]), sum = 0.0;
  for (const float logit : logits) most = std::max(most, static_cast<double>(logit));
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  std::vector<double> out;
  out.reserve(logits.size());
  for (const float logit : logits) {
    out.push_back(static_cast<double>(logit) - most - std::log(sum));
  }
  return out;
}

double divergence(std::span<const double> from, std::span<const double> to) {
  double sum = 0.0;
  for (std::size_t i = 0; i < from.size(); ++i) sum += std::exp(from[i]) * (from[i] - to[i]);
  return sum;
}

}  // namespace

TEST_CASE("integer activations diverge from floats less than other engines' do") {
  std::error_code error;
  if (!std::filesystem::exists(kModel, error)) {
    WARN("skipped: there is no " << kModel);
    return;
  }
  const auto fixture =
      read_fixture(std::filesystem::path(INCIPIT_TEST_DATA) / "reference" / "smollm2.bin");
  ModelRunner floats(EngineOptions::reference(kModel));
  ModelRunner mixed({.model = kModel, .kv_type = KvType::kF32});
  ModelRunner int8({.model = kModel, .kv_type = KvType::kF32, .activations = Activations::kInt8});
  double mixed_divergence = 0.0, int8_divergence = 0.0, mixed_loss = 0.0, int8_loss = 0.0;
  std::size_t positions = 0;
  for (const FixtureCase& text : fixture.cases) {
    const auto ids = text.fed_ids();
    std::vector<std::vector<double>> expected;
    floats.run(ids, [&](std::size_t, std::span<const float> logits) {
      expected.push_back(log_softmax(logits));
    });
    const auto compare = [&](ModelRunner& runner, double& total, double& loss) {
      runner.run(ids, [&](std::size_t position, std::span<const float> logits) {
        const auto got = log_softmax(logits);
        total += divergence(expected[position], got);
        if (position + 1 == ids.size()) return;
        const auto next = static_cast<std::size_t>(ids[position + 1]);
        loss += expected[position][next] - got[next];
      });
    };
    compare(mixed, mixed_divergence, mixed_loss);
    compare(int8, int8_divergence, int8_loss);
    positions += ids.size();
  }
  const auto count = static_cast<double>(positions);
  REQUIRE(positions >= 2000);
  WARN("mean divergence over " << positions << " positions: mixed " << mixed_divergence / count
                               << ", int8 " << int8_divergence / count << "; perplexity "
                               << std::expm1(mixed_loss / count) << ", "
                               << std::expm1(int8_loss / count));
  CHECK(mixed_divergence > 0.0);
  CHECK(mixed_divergence < int8_divergence);
  CHECK(int8_divergence / count <= kAllowedDivergence);
  CHECK(std::abs(std::expm1(mixed_loss / count)) <= kAllowedPerplexity);
  CHECK(std::abs(std::expm1(int8_loss / count)) <= kAllowedPerplexity);
}
