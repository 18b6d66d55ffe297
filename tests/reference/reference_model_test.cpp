// SPDX-License-Identifier: Apache-2.0
// The double-precision reference that other tests rely on is what Hugging Face transformers
// compute.
#include "support/reference_model.h"

#include <algorithm>
#include <cmath>

#include "incipit/error.h"
#include "model/model_file.h"
#include "reference/fixture.h"
#include "reference/tiny_fixtures.h"
#include "support/catch.h"
#include "support/tiny_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

// The fixture's floats are rounded to 24 bits of at most 32.
constexpr double kStoredPrecision = 2e-6;

// Rows of each head from Hugging Face's order (first all first elements of the pairs) to GGUF's.
std::vector<float> interleave_pairs(const std::vector<float>& rows, std::size_t head_dim,
                                    std::size_t columns) {
  std::vector<float> out(rows.size());
  for (std::size_t row = 0; row < rows.size() / columns; ++row) {
    const std::size_t head = row / head_dim * head_dim;
    const std::size_t i = row % head_dim;
    const std::size_t to = head + (i < head_dim / 2 ? 2 * i : 2 * (i - head_dim / 2) + 1);
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                out.begin() + static_cast<std::ptrdiff_t>(to * columns));
  }
  return out;
}

}  // namespace

TEST_CASE("the reference gives the logits of transformers for each family") {
  for (const std::filesystem::path& directory : llama_directories()) {
    const Fixture fixture = read_fixture(directory / "logits.bin");
    const auto file = model::open_model(directory);
    const ModelTensors tensors = read_tensors(directory);
    for (const FixtureCase& expected : fixture.cases) {
      CAPTURE(expected.name);
      const auto logits = reference_logits(file->config(), tensors, expected.fed_ids());
      double worst = 0.0;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const std::vector<float> row(logits[i].begin(), logits[i].end());
        worst = std::max(worst, largest_difference(fixture, expected.rows[i], row));
      }
      INFO("largest difference " << worst);
      CHECK(worst <= kStoredPrecision);
    }
  }
}

TEST_CASE("the reference reads both orders of RoPE pairs") {
  const TinyModel tiny = make_tiny_model({.llama3_rope = true});
  const std::vector<TokenId> ids = {5, 17, 200, 17, 8, 41, 99, 3};
  const auto expected = reference_logits(tiny.config, tiny.tensors, ids);

  model::ModelConfig config = tiny.config;
  config.rope_pairs = device::RopePairs::kAdjacent;
  ModelTensors tensors = tiny.tensors;
  for (auto& [name, values] : tensors) {
    if (name.find("q_proj.weight") != name.npos || name.find("k_proj.weight") != name.npos) {
      values = interleave_pairs(values, config.head_dim, config.width);
    }
  }
  const auto logits = reference_logits(config, tensors, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (std::size_t j = 0; j < logits[i].size(); ++j) {
      REQUIRE(std::abs(logits[i][j] - expected[i][j]) < 1e-9);
    }
  }
}

TEST_CASE("a damaged fixture is refused") {
  CHECK_THROWS_AS(read_fixture(llama_directories()[0] / "config.json"), Error);
  CHECK_THROWS_AS(read_fixture(llama_directories()[0] / "missing.bin"), Error);
}
