// SPDX-License-Identifier: Apache-2.0
// Random models of each family in every weight format, against the double-precision reference.
#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "support/catch.h"
#include "support/reference_model.h"
#include "support/run_model.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"
#include "support/weight_types.h"

using namespace incipit;
using namespace incipit::test;
using tensor::DType;

namespace {

constexpr Family kFamilies[] = {Family::kLlama, Family::kQwen2, Family::kQwen3};

// Logits of these models have a standard deviation of about 3. Largest difference that single
// precision explains: a few hundred roundings of 2^-24 each, amplified by two sharp softmaxes.
constexpr double kFloatTolerance = 2e-4;
// Activations of 8 and 15 bits, 16-bit KV: root mean square difference, as a share of the logits'
// own. These models have no spare precision: all their weights are noise.
constexpr double kDefaultTolerance = 0.05;
// int8 KV alone, likewise: half a step is 1/254 of a head's largest value, or about 0.6 % of its
// root mean square in these heads, twice in each layer. Measured: up to 0.019.
constexpr double kInt8KvTolerance = 0.03;

std::vector<TokenId> some_ids(const TinyModel& model, std::size_t count) {
  std::vector<TokenId> ids;
  std::size_t id = 7;
  for (std::size_t i = 0; i < count; ++i) {
    id = (id * 181 + 43) % model.config.vocabulary;
    ids.push_back(static_cast<TokenId>(id));
  }
  return ids;
}

struct Difference {
  double largest = 0.0;
  double relative = 0.0;  // root mean square, as a share of the expected logits'
};

Difference difference(const std::vector<std::vector<float>>& logits,
                      const std::vector<std::vector<double>>& expected) {
  INCIPIT_CHECK(logits.size() == expected.size());
  Difference result;
  double squares = 0.0, expected_squares = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    INCIPIT_CHECK(logits[i].size() == expected[i].size());
    for (std::size_t j = 0; j < logits[i].size(); ++j) {
      INCIPIT_CHECK(std::isfinite(logits[i][j]));
      const double delta = static_cast<double>(logits[i][j]) - expected[i][j];
      result.largest = std::max(result.largest, std::abs(delta));
      squares += delta * delta;
      expected_squares += expected[i][j] * expected[i][j];
    }
  }
  result.relative = std::sqrt(squares / expected_squares);
  return result;
}

// Every path of this machine, both modes of activations, against the reference.
void compare(const TinyModel& model, const std::filesystem::path& path, std::size_t tokens) {
  const auto ids = some_ids(model, tokens);
  const auto expected = reference_logits(model.config, model.tensors, ids);
  for (const CpuPath cpu_path : cpu_paths()) {
    CAPTURE(path.filename().string(), static_cast<int>(cpu_path), tokens);
    EngineOptions options = EngineOptions::reference(path);
    options.cpu_path = cpu_path;
    options.threads = 1;
    const Difference exact = difference(ModelRunner(options).logits(ids), expected);
    INFO("float activations: " << exact.largest << ", " << exact.relative);
    CHECK(exact.largest <= kFloatTolerance);

    options.kv_type = KvType::kInt8;
    const Difference int8_kv = difference(ModelRunner(options).logits(ids), expected);
    INFO("float activations, int8 KV: " << int8_kv.relative);
    CHECK(int8_kv.relative <= kInt8KvTolerance);

    options.activations = Activations::kMixed;
    options.kv_type = KvType::kAuto;
    const Difference rounded = difference(ModelRunner(options).logits(ids), expected);
    INFO("default: " << rounded.largest << ", " << rounded.relative);
    CHECK(rounded.relative <= kDefaultTolerance);
  }
}

}  // namespace

TEST_CASE("every family in every weight format") {
  const TemporaryDirectory directory;
  for (const Family family : kFamilies) {
    for (const DType type : kWeightTypes) {
      for (const bool tied : {false, true}) {
        CAPTURE(static_cast<int>(family), tensor::name(type), tied);
        const TinyModel model = make_tiny_model({.family = family, .tied = tied, .type = type});
        model.write_gguf(directory.path() / "model.gguf");
        compare(model, directory.path() / "model.gguf", 33);
      }
    }
  }
}

TEST_CASE("both files of a model, whose RoPE pairs and scaling are written differently") {
  const TemporaryDirectory directory;
  for (const Family family : kFamilies) {
    const TinyModel model = make_tiny_model({.family = family, .llama3_rope = true});
    model.write_gguf(directory.path() / "model.gguf");
    model.write_hugging_face(directory.path() / "model");
    CAPTURE(static_cast<int>(family));
    compare(model, directory.path() / "model.gguf", 70);
    compare(model, directory.path() / "model", 70);
  }
}

TEST_CASE("shapes: one KV head, as many as heads, a head of 128, heads wider than the model") {
  const TemporaryDirectory directory;
  const TinyModelOptions shapes[] = {
      {.kv_heads = 1},
      {.heads = 3, .kv_heads = 3},
      {.width = 96, .heads = 9, .kv_heads = 3, .head_dim = 8, .ffn_width = 160},
      {.layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 128, .ffn_width = 32},
      {.family = Family::kQwen3, .width = 32, .heads = 4, .kv_heads = 2, .head_dim = 32},
  };
  for (const TinyModelOptions& options : shapes) {
    const TinyModel model = make_tiny_model(options);
    model.write_gguf(directory.path() / "model.gguf");
    compare(model, directory.path() / "model.gguf", 40);
  }
}

TEST_CASE("sliding windows, within a segment of attention and over several") {
  const TemporaryDirectory directory;
  for (const std::uint32_t window : {20u, 300u}) {
    const TinyModel model = make_tiny_model({.window = window, .type = DType::kQ8_0});
    model.write_gguf(directory.path() / "model.gguf");
    model.write_hugging_face(directory.path() / ("model-" + std::to_string(window)));
    CAPTURE(window);
    compare(model, directory.path() / "model.gguf", 330);
    compare(model, directory.path() / ("model-" + std::to_string(window)), 60);
  }
}

TEST_CASE("sequences that fill blocks and attention segments, and one more") {
  const TemporaryDirectory directory;
  const TinyModel model = make_tiny_model({.type = DType::kQ4_1});
  model.write_gguf(directory.path() / "model.gguf");
  for (const std::size_t tokens : {1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 400u}) {
    compare(model, directory.path() / "model.gguf", tokens);
  }
}
