// SPDX-License-Identifier: Apache-2.0
// What incipit-bench compares times with: the model's shape, the formulas, and its statistics.
#include "benchmarks/incipit_bench/yardstick.h"

#include <filesystem>

#include "benchmarks/incipit_bench/metric.h"
#include "examples/run_program.h"
#include "support/catch.h"
#include "support/tiny_model.h"

using namespace incipit::test;
namespace fs = std::filesystem;

TEST_CASE("the shape of a GGUF model is read from its file") {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "model.gguf";
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    TinyModelOptions options;
    options.tied = tied;
    const TinyModel model = make_tiny_model(options);
    model.write_gguf(path);
    const auto shape = bench::read_shape(path);
    REQUIRE(shape);
    // q and output are 64 x 64, k and v 32 x 64; gate, up and down 96 x 64.
    CHECK(shape->layer_parameters == 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64));
    const double vocabulary = static_cast<double>(model.config.vocabulary);
    CHECK(shape->output_parameters == vocabulary * 64);
    CHECK(shape->attention_width == 2 * 4 * 16);
    // F32 matrices and five norms of 64. What aligns tensors may add to that.
    const double bytes = 4 * (shape->layer_parameters + shape->output_parameters + 5 * 64);
    CHECK(shape->weight_bytes >= bytes);
    CHECK(shape->weight_bytes <= bytes + 64 * 32);
  }
}

TEST_CASE("what is no whole GGUF file has no shape") {
  const TemporaryDirectory directory;
  const fs::path path = directory.path() / "model.gguf";
  make_tiny_model().write_gguf(path);
  const std::string whole = read_file(path);
  CHECK(!bench::read_shape(directory.path()));
  CHECK(!bench::read_shape(directory.path() / "missing"));
  for (const std::size_t length : {0u, 3u, 4u, 20u, 100u, 1000u}) {
    write_file(path, whole.substr(0, length));
    CHECK(!bench::read_shape(path));
  }
  write_file(path, "ELF!" + whole.substr(4));
  CHECK(!bench::read_shape(path));
}

TEST_CASE("fractions are the least time over the time") {
  bench::Yardstick yardstick;
  yardstick.kv_bytes_per_token = 10;
  CHECK(!yardstick.decode_fraction(1, 1, 1));
  yardstick.limits = bench::MachineLimits{.memory_bytes = 1000, .f32_flops = 100};
  CHECK(!yardstick.prefill_fraction(1, 1, 0, 1));
  yardstick.shape = bench::ModelShape{
      .layer_parameters = 7, .output_parameters = 3, .attention_width = 2, .weight_bytes = 200};
  // 4 steps of 200 bytes and 20 tokens of KV: 1,000 bytes in 2 s.
  CHECK(yardstick.decode_fraction(4, 20, 2).value() == Approx(0.5));
  // 3 tokens behind 5 see 6, 7 and 8 tokens; each such pair costs 8.
  const double pairs = 6 + 7 + 8;
  const double flops = 2 * 7 * 3 + 2 * 3 + 8 * pairs;
  CHECK(yardstick.prefill_fraction(2, 3, 5, 10).value() == Approx(2 * flops / 10 / 100));
  yardstick.limits->bf16_flops = 200;
  CHECK(yardstick.prefill_fraction(2, 3, 5, 10).value() == Approx(2 * flops / 10 / 200));
}

TEST_CASE("a step reads what its rows see, a shared prefix once") {
  // Two steps behind 100 tokens: 3 samples have 1 token of their own, then 2.
  CHECK(bench::kv_tokens_read(2, 100, 3) == 103 + 106);
}

TEST_CASE("medians and spreads") {
  CHECK(bench::median({3}) == 3);
  CHECK(bench::median({9, 1, 4}) == 4);
  CHECK(bench::median({9, 1, 4, 5}) == 4.5);
  bench::Metric metric;
  for (const double value : {8.0, 12.0, 10.0}) metric.add(value, value / 20);
  metric.add(10);
  CHECK(metric.spread() == Approx(0.4));
  CHECK(metric.smallest() == 8);
  CHECK(metric.largest() == 12);
  CHECK(metric.fractions.size() == 3);
}
