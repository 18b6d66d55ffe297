// SPDX-License-Identifier: Apache-2.0
// Whole tiny models on the CUDA device, in the emulator or on a GPU: the CPU's logits, and
// promise 1.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "cuda/logits_difference.h"
#include "cuda/tiny_cuda_model.h"
#include "engine/same_logprobs.h"
#include "support/catch.h"
#include "support/run_model.h"

using namespace incipit;
using namespace incipit::test;

namespace {

std::string uncached(Engine& engine, std::span<const TokenId> ids, std::size_t max_tokens = 2) {
  return fingerprint(engine.generate(ids, whole_rows(engine, max_tokens)));
}

std::string cached(Engine& engine, std::span<const TokenId> ids, std::size_t max_tokens = 2) {
  return fingerprint(engine.generate_with_cache(ids, whole_rows(engine, max_tokens)));
}

double worst_difference(const std::vector<std::vector<float>>& a,
                        const std::vector<std::vector<float>>& b) {
  LogitsDifference difference;
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    difference.add(a[i], b[i]);
  }
  return difference.worst();
}

}  // namespace

TEST_CASE("a tiny model on the GPU gives the CPU's logits") {
  struct Case {
    Family family;
    tensor::DType type;
    KvType kv;
    double tolerance;
    GpuMath math = GpuMath::kExact;
  };
  // Queries and weights of keys are rounded to the KV's 16 bits on the GPU, and not on the CPU.
  // A random model spreads that further than a trained one.
  for (const Case& c :
       {Case{Family::kLlama, tensor::DType::kF32, KvType::kF16, 3e-3},
        Case{Family::kQwen2, tensor::DType::kQ8_0, KvType::kF16, 1e-2},
        Case{Family::kLlama, tensor::DType::kQ4_1, KvType::kBF16, 5e-2},
        Case{Family::kQwen3, tensor::DType::kF16, KvType::kInt8, 4e-2},
        Case{Family::kQwen2, tensor::DType::kF16, KvType::kF16, 1e-2, GpuMath::kFast}}) {
    const TinyModelFile file(tiny(c.family, c.type));
    const bool fast = c.math == GpuMath::kFast;
    const auto ids = random_ids(fast ? 140 : 75, 1);
    EngineOptions cpu = on(file, DeviceKind::kCpu, c.kv), gpu = on(file, DeviceKind::kCuda, c.kv);
    cpu.activations = Activations::kFloat;
    gpu.gpu_math = c.math;
    gpu.prefill_chunk = fast ? 136 : 50;  // rows enough for a library's products
    const double difference =
        worst_difference(ModelRunner(cpu).logits(ids), ModelRunner(gpu).logits(ids));
    CAPTURE(static_cast<int>(c.family), difference);
    CHECK(difference <= c.tolerance);
    CHECK(difference > 0.0);  // they are two devices
  }
}

TEST_CASE("fast mode decodes to the CPU's logits, and to the same bits every time") {
  for (const KvType type : {KvType::kF16, KvType::kInt8}) {
    const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
    EngineOptions gpu = on(file, DeviceKind::kCuda, type);
    gpu.prefill_chunk = 2;  // with 3 heads, rows few enough for the vector kernel
    const auto ids = random_ids(37, 1);
    const auto exact = ModelRunner(gpu).logits(ids);
    gpu.gpu_math = GpuMath::kFast;
    const auto fast = ModelRunner(gpu).logits(ids);
    EngineOptions cpu = on(file, DeviceKind::kCpu, type);
    cpu.activations = Activations::kFloat;
    const auto wanted = ModelRunner(cpu).logits(ids);
    // Nothing but the KV is rounded; in int8 a last bit of it is worth more.
    CHECK(worst_difference(wanted, fast) <= (type == KvType::kF16 ? 1e-3 : 2e-2));
    CHECK(worst_difference(wanted, fast) < worst_difference(wanted, exact));
    CHECK(fast == ModelRunner(gpu).logits(ids));
  }
}

TEST_CASE("on the GPU, every split of a prompt gives the bits of the uncached run") {
  for (const KvType type : {KvType::kF16, KvType::kInt8}) {
    const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
    Engine engine(on(file, DeviceKind::kCuda, type));
    CHECK(engine.model().numerics.starts_with("cuda/"));
    const auto ids = random_ids(70, 7);
    const std::string expected = uncached(engine, ids);
    for (const std::size_t split : {1u, 16u, 33u, 69u}) {
      engine.cache().clear();
      engine.generate_with_cache(std::span(ids).first(split), {.max_tokens = 0});
      CAPTURE(split, static_cast<int>(type));
      CHECK(cached(engine, ids) == expected);
    }
  }
}

TEST_CASE("on the GPU, prompts of a token, and around a block, are the same from the cache") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  Engine engine(on(file, DeviceKind::kCuda));
  const auto all = random_ids(33, 21);
  for (const std::size_t count : {1u, 15u, 16u, 17u, 31u, 32u, 33u}) {
    const auto ids = std::span(all).first(count);
    const std::string expected = uncached(engine, ids, 3);
    CAPTURE(count);
    engine.cache().clear();
    CHECK(cached(engine, ids, 3) == expected);
    CHECK(cached(engine, ids, 3) == expected);
  }
}

TEST_CASE(
    "on the GPU, tokens of a text have the bits of a prompt's, though their steps are graphs") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF16));
  Engine engine(on(file, DeviceKind::kCuda));
  auto ids = random_ids(10, 31);  // the text goes over the end of a block
  const GenerateResult text = engine.generate(ids, whole_rows(engine, 9));
  REQUIRE(text.token_ids.size() == 9);
  for (std::size_t i = 0; i < text.token_ids.size(); ++i) {
    const GenerateResult prompt = engine.generate(ids, whole_rows(engine, 1));
    CAPTURE(i);
    CHECK(engine::same_bits(prompt.top.at(0), text.top.at(i)));
    ids.push_back(text.token_ids[i]);
  }
}

TEST_CASE("on the GPU, chunks and segments change nothing") {
  const TinyModelFile file(tiny(Family::kLlama, tensor::DType::kF32));
  const auto ids = random_ids(270, 9);  // more than a segment
  std::string expected;
  for (const std::size_t chunk : {512u, 100u}) {
    EngineOptions options = on(file, DeviceKind::kCuda);
    options.prefill_chunk = chunk;
    Engine engine(options);
    const std::string got = uncached(engine, ids);
    if (expected.empty()) expected = got;
    CAPTURE(chunk);
    CHECK(got == expected);
    CHECK(cached(engine, ids) == expected);
    CHECK(cached(engine, ids) == expected);
  }
}

TEST_CASE("on the GPU, a window that hides whole segments changes no bits with chunks or cache") {
  TinyModelOptions model = tiny(Family::kLlama, tensor::DType::kF16);
  model.window = 20;
  const TinyModelFile file(model);
  const auto ids = random_ids(290, 9);  // its last rows see nothing of the first segment
  std::string expected;
  for (const std::size_t chunk : {512u, 270u}) {
    EngineOptions options = on(file, DeviceKind::kCuda, KvType::kF16);
    options.prefill_chunk = chunk;
    Engine engine(options);
    const std::string got = uncached(engine, ids);
    if (expected.empty()) expected = got;
    CAPTURE(chunk);
    CHECK(got == expected);
    engine.generate_with_cache(std::span(ids).first(277), {.max_tokens = 0});
    CHECK(cached(engine, ids) == expected);
  }
}

TEST_CASE("on the GPU, who else is in the batch changes nothing") {
  const TinyModelFile file(tiny(Family::kQwen3, tensor::DType::kQ4_0));
  Engine engine(on(file, DeviceKind::kCuda));
  const auto shared = random_ids(40, 12);
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> expected;
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto ids = i % 2 == 0 ? shared : std::vector<TokenId>();
    const auto tail = random_ids(5 + 13 * i, 100 + i);
    ids.insert(ids.end(), tail.begin(), tail.end());
    expected.push_back(uncached(engine, ids, 3));
    prompts.push_back(std::move(ids));
  }
  std::vector<std::string> got(prompts.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    callers.emplace_back([&, i] { got[i] = cached(engine, prompts[i], 3); });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(got == expected);
}
