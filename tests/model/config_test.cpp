// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <limits>

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
