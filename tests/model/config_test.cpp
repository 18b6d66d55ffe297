// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "support/catch.h"
#include "support/tiny_model.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

ModelConfig valid() { return test::make_tiny_model().config; }

void check_refused(const ModelConfig& config, const std::string& part) {
  test::check_unreadable(part, [&] {
    check_config(config, "some/config.json");
    return 0;
  });
}

TEST_CASE("A config of a real kind passes") {
  CHECK_NOTHROW(check_config(valid(), "config.json"));
  ModelConfig largest = valid();
  largest.context = std::size_t{1} << 20;
  largest.head_dim = 256;
  largest.kv_heads = 1;
  CHECK_NOTHROW(check_config(largest, "config.json"));
}

TEST_CASE("Every size has a floor and a cap") {
  std::size_t ModelConfig::*const sizes[] = {&ModelConfig::vocabulary, &ModelConfig::context,
                                             &ModelConfig::layers,     &ModelConfig::width,
                                             &ModelConfig::heads,      &ModelConfig::kv_heads,
                                             &ModelConfig::head_dim,   &ModelConfig::ffn_width};
  for (const auto size : sizes) {
    for (const std::size_t value :
         {std::size_t{0}, std::size_t{1} << 32, std::numeric_limits<std::size_t>::max()}) {
      ModelConfig config = valid();
      config.*size = value;
      check_refused(config, "some/config.json: the model's");
    }
  }
}

TEST_CASE("Heads share KV heads evenly and have an even dimension") {
  ModelConfig config = valid();
  config.heads = 6;
  config.kv_heads = 4;
  check_refused(config, "6 heads cannot share 4 KV heads");
  config.kv_heads = 7;
  check_refused(config, "number of KV heads is 7");
  config = valid();
  config.head_dim = 15;
  check_refused(config, "is odd");
  config.head_dim = 258;
  check_refused(config, "head dimension is 258");
}

TEST_CASE("Factors are positive numbers") {
  for (const auto factor : {&ModelConfig::embedding_scale, &ModelConfig::attention_scale,
                            &ModelConfig::attention_soft_cap, &ModelConfig::logit_soft_cap}) {
    ModelConfig config = valid();
    config.*factor = 0.5f;
    CHECK_NOTHROW(check_config(config, "config.json"));
    for (const float value :
         {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      config.*factor = value;
      check_refused(config, "no positive number");
    }
  }
  ModelConfig config = valid();
  config.embedding_scale = 0.0f;
  check_refused(config, "embedding scale");
  config = valid();
  config.embedding_width = std::size_t{1} << 32;
  check_refused(config, "embedding width");
}

TEST_CASE("KV is shared under a config's fields, and each member changes them but for the name") {
  const ModelConfig original = valid();
  const std::string fields = config_fields(original);
  std::vector<ModelConfig> changed;
  const auto change = [&](const auto& edit) {
    changed.push_back(original);
    edit(changed.back());
  };
  change([](ModelConfig& c) { c.architecture += 'x'; });
  for (const auto size :
       {&ModelConfig::vocabulary, &ModelConfig::context, &ModelConfig::layers, &ModelConfig::width,
        &ModelConfig::embedding_width, &ModelConfig::heads, &ModelConfig::kv_heads,
        &ModelConfig::head_dim, &ModelConfig::ffn_width, &ModelConfig::position_offset}) {
    change([&](ModelConfig& c) { ++(c.*size); });
  }
  for (const auto flag :
       {&ModelConfig::qk_norm, &ModelConfig::embedding_norm, &ModelConfig::final_norm,
        &ModelConfig::gated_ffn, &ModelConfig::qkv_bias, &ModelConfig::output_bias,
        &ModelConfig::ffn_bias, &ModelConfig::tied_output}) {
    change([&](ModelConfig& c) { c.*flag = !(c.*flag); });
  }
  for (const auto factor :
       {&ModelConfig::norm_epsilon, &ModelConfig::embedding_scale, &ModelConfig::attention_scale,
        &ModelConfig::attention_soft_cap, &ModelConfig::logit_soft_cap}) {
    change([&](ModelConfig& c) { c.*factor += 0.25f; });
  }
  change([](ModelConfig& c) { c.norm = Norm::kLayer; });
  change([](ModelConfig& c) { c.norm_place = NormPlace::kAfter; });
  change([](ModelConfig& c) { c.activation = device::Activation::kRelu; });
  change([](ModelConfig& c) { c.positions = Positions::kAlibi; });
  change([](ModelConfig& c) { c.rope_pairs = device::RopePairs::kAdjacent; });
  change([](ModelConfig& c) { c.rope_frequencies[3] *= 2.0f; });
  change([](ModelConfig& c) { c.local_rope_frequencies = c.rope_frequencies; });
  change([](ModelConfig& c) { c.window = 3; });
  change([](ModelConfig& c) { c.windowed_layers = {1, 0}; });
  change([](ModelConfig& c) { c.windowed_layers = {0, 1}; });
  std::set<std::string> all = {fields};
  for (const ModelConfig& config : changed) all.insert(config_fields(config));
  CHECK(all.size() == changed.size() + 1);

  ModelConfig renamed = original;
  renamed.name += 'x';
  CHECK(config_fields(renamed) == fields);
}

TEST_CASE("A window that hides nothing is none, but for its layers' RoPE") {
  ModelConfig config = valid();  // of 512 tokens
  CHECK(config.window_of(0) == 0);
  set_window(config, 512, {1, 1});
  CHECK(config.windowed_layers.empty());
  set_window(config, 1, {0, 0});
  CHECK(config.windowed_layers.empty());
  set_window(config, 511, {0, 1});
  CHECK(config.window_of(0) == 0);
  CHECK(config.window_of(1) == 511);
  // But layers that turn by frequencies of their own are still told apart.
  ModelConfig two_ropes = valid();
  two_ropes.local_rope_frequencies = two_ropes.rope_frequencies;
  set_window(two_ropes, std::uint64_t{1} << 40, {0, 1});
  CHECK(two_ropes.window == 512);
  CHECK(two_ropes.windowed_layers == std::vector<std::uint8_t>{0, 1});
  CHECK_FALSE(two_ropes.is_windowed(0));
  CHECK(two_ropes.is_windowed(1));
  CHECK_FALSE(valid().is_windowed(1));
  CHECK(window_pattern(7, 3) == std::vector<std::uint8_t>{1, 1, 0, 1, 1, 0, 1});
  CHECK(window_pattern(2, 6) == std::vector<std::uint8_t>{1, 1});
  CHECK(window_pattern(2, 1) == std::vector<std::uint8_t>{0, 0});
}

TEST_CASE("Gemma's embedding scale is rounded as the embedding is stored") {
  CHECK(embedding_scale(640, tensor::DType::kBF16) == 25.25f);
  CHECK(embedding_scale(640, tensor::DType::kF16) == 25.296875f);
  CHECK(embedding_scale(640, tensor::DType::kQ8_0) == std::sqrt(640.0f));
  CHECK(embedding_scale(1024, tensor::DType::kF32) == 32.0f);
}

TEST_CASE("The slopes of ALiBi") {
  CHECK(alibi_slopes(1) == std::vector<float>{0.00390625f});
  CHECK(alibi_slopes(8) == std::vector<float>{0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f, 0.015625f,
                                              0.0078125f, 0.00390625f});
  const std::vector<float> twelve = alibi_slopes(12);
  REQUIRE(twelve.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    const double power = i < 8 ? static_cast<double>(i + 1) : static_cast<double>(i - 8) + 0.5;
    CHECK(twelve[i] == Approx(std::pow(2.0, -power)).epsilon(1e-6));
  }
}

TEST_CASE("The epsilon of the norms is a small positive number") {
  ModelConfig config = valid();
  for (const float epsilon : {0.0f, -1e-5f, 1.0f, std::numeric_limits<float>::infinity(),
                              std::numeric_limits<float>::quiet_NaN()}) {
    config.norm_epsilon = epsilon;
    check_refused(config, "epsilon");
  }
}

}  // namespace
}  // namespace incipit::model
