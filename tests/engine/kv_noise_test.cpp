// SPDX-License-Identifier: Apache-2.0
#include "engine/kv_noise.h"

#include <cmath>
#include <cstring>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "support/catch.h"
#include "support/fake_device.h"

using namespace incipit;
using namespace incipit::test;

namespace {

GenerateParams noisy(const Engine& engine, std::uint64_t sample, float noise = 0.1f) {
  GenerateParams params = whole_rows(engine, 12);
  params.seed = 3;
  params.sample = sample;
  params.kv_noise = noise;
  return params;
}

}  // namespace

TEST_CASE("noise has the deviation that was asked for, and no mean") {
  FakeDevice device;
  const device::KvLayout layout({2, 2, 16, device::KvFormat::kF32});
  device::Buffer memory = device.allocate(3 * layout.block_bytes());
  const device::KvPoolView pool{memory.data(), 3, layout};
  const std::size_t values = layout.block_bytes() / sizeof(float);
  const std::vector<float> ones(values, 1.0f);
  const std::vector<device::BlockId> blocks = {2, 0};
  for (const auto block : blocks) device.upload(std::as_bytes(std::span(ones)), pool.block(block));
  engine::add_noise(device, pool, blocks, {.seed = 1, .sample = 2, .deviation = 0.05f});
  double sum = 0, squares = 0;
  std::vector<float> first(values), second(values);
  std::memcpy(first.data(), pool.block(2), layout.block_bytes());
  std::memcpy(second.data(), pool.block(0), layout.block_bytes());
  for (const auto* part : {&first, &second}) {
    for (const float value : *part) {
      const double off = static_cast<double>(value) - 1.0;
      sum += off;
      squares += off * off;
    }
  }
  const double count = 2.0 * static_cast<double>(values);
  CHECK(std::abs(sum / count) < 4 * 0.05 / std::sqrt(count));
  CHECK(std::sqrt(squares / count) == Approx(0.05).epsilon(0.05));
  CHECK(first != second);
}

TEST_CASE("a sample's noise is its own, and is the same whatever else runs") {
  const TinyModelFile file;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    EngineOptions options = file.options();
    options.kv_type = type;
    Engine engine(options);
    const auto prompt = random_ids(75, 5);
    const std::string exact = fingerprint(engine.generate(prompt, whole_rows(engine, 12)));
    std::vector<std::string> alone;
    for (std::uint64_t i = 0; i < 4; ++i) {
      alone.push_back(fingerprint(engine.generate(prompt, noisy(engine, i))));
      CHECK(alone.back() != exact);
      CHECK((i == 0 || alone[i] != alone[i - 1]));
    }
    for (int cached = 0; cached < 2; ++cached) {
      std::vector<Generation> together;
      for (std::uint64_t i = 0; i < 4; ++i) {
        together.push_back(engine.submit(prompt, noisy(engine, i)));
      }
      for (std::size_t i = 0; i < 4; ++i) {
        const GenerateResult result = together[i].wait();
        CHECK(fingerprint(result) == alone[i]);
        CHECK(result.kv_noise == 0.1f);
      }
    }
    // Nothing of it is left behind.
    const GenerateResult after = engine.generate_with_cache(prompt, whole_rows(engine, 12));
    CHECK(after.reused_tokens >= 64);
    CHECK(fingerprint(after) == exact);
    CHECK(after.kv_noise == 0.0f);
    CHECK(engine.cache().stats().blocks_in_use == 0);
  }
}

TEST_CASE("noise survives a preemption") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  const auto prompt = random_ids(60, 6);
  std::vector<std::string> expected;
  const auto params = [](const Engine& engine, std::uint64_t sample) {
    GenerateParams wanted = noisy(engine, sample);
    wanted.max_tokens = 150;
    return wanted;
  };
  {
    Engine engine(options);
    for (std::uint64_t i = 0; i < 5; ++i) {
      expected.push_back(fingerprint(engine.generate(prompt, params(engine, i))));
    }
  }
  options.kv_pool_bytes = 22 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  std::vector<Generation> together;
  for (std::uint64_t i = 0; i < 5; ++i) {
    together.push_back(engine.submit(prompt, params(engine, i)));
  }
  for (std::size_t i = 0; i < 5; ++i) CHECK(fingerprint(together[i].wait()) == expected[i]);
  CHECK(engine.stats().preemptions > 0);
}

TEST_CASE("a prompt of one token has nothing that noise could change") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::vector<TokenId> prompt = {30};
  CHECK(fingerprint(engine.generate(prompt, noisy(engine, 0))) ==
        fingerprint(engine.generate(prompt, whole_rows(engine, 12))));
}

TEST_CASE("noise is refused where it cannot be") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.kv_type = KvType::kInt8;
  Engine engine(options);
  CHECK_THROWS_AS(engine.generate(random_ids(20, 1), noisy(engine, 0)), Error);
  CHECK_THROWS_AS(engine.generate(random_ids(20, 1), noisy(engine, 0, 1.5f)), Error);
  CHECK_THROWS_AS(engine.generate(random_ids(20, 1), noisy(engine, 0, -0.1f)), Error);
}
