// SPDX-License-Identifier: Apache-2.0
// Promise 1: the logits of a position depend on the token ids up to it and on nothing else.
#include <algorithm>
#include <set>
#include <thread>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

namespace {

std::string uncached(Engine& engine, std::span<const TokenId> ids, std::size_t max_tokens = 3) {
  return fingerprint(engine.generate(ids, whole_rows(engine, max_tokens)));
}

std::string cached(Engine& engine, std::span<const TokenId> ids, std::size_t max_tokens = 3) {
  return fingerprint(engine.generate_with_cache(ids, whole_rows(engine, max_tokens)));
}

// Leaves the KV of exactly this prefix in an otherwise empty cache.
void warm(Engine& engine, std::span<const TokenId> prefix) {
  engine.cache().clear();
  if (!prefix.empty()) engine.generate_with_cache(prefix, {.max_tokens = 0});
}

// Tokens that can be reused of a prompt whose first `split` tokens were prefilled before: whole
// blocks, and one token is always computed.
std::size_t reusable(std::size_t split, std::size_t prompt) {
  return std::min(split / 16 * 16, prompt - 1);
}

}  // namespace

TEST_CASE("every split of a prompt gives the bits of the uncached run, on every path") {
  for (const auto type : {tensor::DType::kF32, tensor::DType::kQ4_1}) {
    const TinyModelFile file({.type = type});
    for (const CpuPath path : cpu_paths()) {
      EngineOptions options = file.options();
      options.cpu_path = path;
      Engine engine(options);
      for (const std::size_t n : {1u, 2u, 15u, 16u, 17u, 31u, 32u, 33u, 100u, 256u, 257u, 300u}) {
        const auto ids = random_ids(n, static_cast<std::uint32_t>(n));
        const std::string expected = uncached(engine, ids);
        for (const std::size_t split : std::set<std::size_t>{0, 1, 15, 16, 17, n - 1, n}) {
          if (split > n) continue;
          warm(engine, std::span(ids).first(split));
          const auto result = engine.generate_with_cache(ids, whole_rows(engine, 3));
          CAPTURE(n, split, static_cast<int>(path));
          CHECK(result.reused_tokens == reusable(split, n));
          CHECK(fingerprint(result) == expected);
        }
      }
    }
  }
}

TEST_CASE("every split point of one prompt") {
  const auto type = GENERATE(tensor::DType::kQ8_0, tensor::DType::kQ5_0, tensor::DType::kQ5_K,
                             tensor::DType::kQ6_K);
  const TinyModelFile file({.type = type});
  Engine engine(file.options());
  const auto ids = random_ids(70, 7);
  const std::string expected = uncached(engine, ids);
  for (std::size_t split = 0; split <= ids.size(); ++split) {
    warm(engine, std::span(ids).first(split));
    CHECK(cached(engine, ids) == expected);
  }
}

TEST_CASE("a prompt that leaves a cached one inside a block reuses the common front") {
  const TinyModelFile file({.type = tensor::DType::kQ4_0});
  Engine engine(file.options());
  auto ids = random_ids(64, 8);
  for (std::size_t changed = 33; changed < 48; ++changed) {
    auto other = ids;
    other[changed] = other[changed] == 20 ? 21 : 20;
    const std::string expected = uncached(engine, other);
    warm(engine, ids);
    const auto result = engine.generate_with_cache(other, whole_rows(engine, 3));
    CHECK(result.reused_tokens == changed);
    CHECK(fingerprint(result) == expected);
  }
}

TEST_CASE("prefill chunks and threads change nothing") {
  for (const auto family : {Family::kLlama, Family::kQwen2, Family::kQwen3}) {
    const TinyModelFile file({.family = family, .type = tensor::DType::kQ4_1});
    const auto ids = random_ids(290, 9);
    for (const CpuPath path : cpu_paths()) {
      std::string expected;
      for (const std::size_t chunk : {512u, 1u, 7u, 16u, 100u}) {
        for (const unsigned threads : {1u, 2u}) {
          EngineOptions options = file.options();
          options.cpu_path = path;
          options.prefill_chunk = chunk;
          options.threads = threads;
          Engine engine(options);
          const std::string got = uncached(engine, ids);
          if (expected.empty()) expected = got;
          CAPTURE(chunk, threads, static_cast<int>(path));
          CHECK(got == expected);
          CHECK(cached(engine, ids) == expected);
          CHECK(cached(engine, ids) == expected);
        }
      }
    }
  }
}

TEST_CASE("each KV type is exact against itself") {
  const TinyModelFile file({.type = tensor::DType::kBF16});
  const auto ids = random_ids(300, 10);
  std::set<std::string> numerics;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kInt8}) {
    EngineOptions options = file.options();
    options.kv_type = type;
    Engine engine(options);
    numerics.insert(engine.model().numerics);
    const std::string expected = uncached(engine, ids);
    for (const std::size_t split : {33u, 256u, 299u}) {
      warm(engine, std::span(ids).first(split));
      CHECK(cached(engine, ids) == expected);
    }
    // The front of a block is copied: values, and scales where there are any.
    auto other = ids;
    other[41] = other[41] == 20 ? 21 : 20;
    warm(engine, other);
    const auto result = engine.generate_with_cache(ids, whole_rows(engine, 3));
    CHECK(result.reused_tokens == 41);
    CHECK(fingerprint(result) == expected);
  }
  CHECK(numerics.size() == 4);
}

TEST_CASE("each mode of activations is exact, the reference preset too") {
  const auto type = GENERATE(tensor::DType::kQ4_1, tensor::DType::kQ8_0, tensor::DType::kBF16);
  const TinyModelFile file({.type = type});
  const auto ids = random_ids(50, 11);
  EngineOptions int8 = file.options();
  int8.activations = Activations::kInt8;
  for (const EngineOptions& base : {int8, EngineOptions::reference(file.path())}) {
    std::string expected;
    for (const std::size_t chunk : {512u, 1u, 7u}) {
      EngineOptions options = base;
      options.prefill_chunk = chunk;
      Engine engine(options);
      if (expected.empty()) expected = uncached(engine, ids);
      CAPTURE(engine.model().numerics, chunk);
      CHECK(uncached(engine, ids) == expected);
      for (const std::size_t split : {0u, 1u, 15u, 16u, 17u, 33u, 49u, 50u}) {
        warm(engine, std::span(ids).first(split));
        CHECK(cached(engine, ids) == expected);
      }
    }
  }
}

TEST_CASE("who else is in the batch changes nothing") {
  const TinyModelFile file({.type = tensor::DType::kQ4_1});
  for (const CpuPath path : cpu_paths()) {
    EngineOptions options = file.options();
    options.cpu_path = path;
    options.prefill_chunk = 40;
    Engine engine(options);
    const auto shared = random_ids(40, 12);
    std::vector<std::vector<TokenId>> prompts;
    std::vector<std::string> expected;
    for (std::uint32_t i = 0; i < 6; ++i) {
      auto ids = i % 2 == 0 ? shared : std::vector<TokenId>();
      const auto tail = random_ids(5 + 23 * i, 100 + i);
      ids.insert(ids.end(), tail.begin(), tail.end());
      expected.push_back(uncached(engine, ids, 12));
      prompts.push_back(std::move(ids));
    }
    for (int round = 0; round < 2; ++round) {
      std::vector<std::string> got(prompts.size());
      std::vector<std::thread> callers;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        callers.emplace_back([&, i] { got[i] = cached(engine, prompts[i], 12); });
      }
      for (std::thread& caller : callers) caller.join();
      CHECK(got == expected);
    }
  }
}

TEST_CASE("eviction and re-fill change nothing") {
  const TinyModelFile file({.type = tensor::DType::kQ8_0});
  EngineOptions options = file.options();
  std::size_t block = 0;
  {
    Engine engine(options);
    block = engine.model().pool_bytes_per_block;
  }
  options.kv_pool_bytes = 8 * block;  // one prompt and a half
  Engine engine(options);
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::string> expected;
  for (std::uint32_t i = 0; i < 3; ++i) {
    prompts.push_back(random_ids(70 + i, 200 + i));
    expected.push_back(uncached(engine, prompts.back()));
  }
  for (int round = 0; round < 4; ++round) {
    for (std::size_t i = 0; i < prompts.size(); ++i)
      CHECK(cached(engine, prompts[i]) == expected[i]);
  }
  CHECK(engine.cache().stats().evictions > 0);
}

TEST_CASE("generated tokens are found again") {
  const TinyModelFile file({.type = tensor::DType::kQ4_1});
  Engine engine(file.options());
  auto ids = random_ids(20, 13);
  const auto first = engine.generate_with_cache(ids, {.max_tokens = 30, .ignore_eos = true});
  ids.insert(ids.end(), first.token_ids.begin(), first.token_ids.end());
  const auto tail = random_ids(5, 14);
  ids.insert(ids.end(), tail.begin(), tail.end());
  const std::string expected = uncached(engine, ids);
  const auto second = engine.generate_with_cache(ids, whole_rows(engine, 3));
  CHECK(second.reused_tokens == 48);  // whole blocks of the 49 tokens whose KV was computed
  CHECK(fingerprint(second) == expected);
}

TEST_CASE("labels part the cache") {
  const TinyModelFile file;
  Engine engine(file.options());
  const auto ids = random_ids(40, 15);
  const auto reused = [&](const std::string& salt, const std::string& version) {
    return engine
        .generate_with_cache(ids, {.max_tokens = 0, .cache = {.salt = salt, .version = version}})
        .reused_tokens;
  };
  CHECK(reused("", "") == 0);
  CHECK(reused("", "") == 32);
  CHECK(reused("a", "") == 0);
  CHECK(reused("a", "") == 32);
  CHECK(reused("", "a") == 0);
  CHECK(reused("ab", "c") == 0);
  CHECK(reused("a", "bc") == 0);
  CHECK(reused("ab", "c") == 32);
  CHECK(engine.generate(ids, {.max_tokens = 0}).reused_tokens == 0);
}

TEST_CASE("temperature sampling is the same text whatever else runs") {
  const TinyModelFile file({.type = tensor::DType::kQ4_1});
  Engine engine(file.options());
  const auto ids = random_ids(33, 16);
  const auto text = [&](std::uint64_t seed, std::uint64_t sample) {
    GenerateParams params = whole_rows(engine, 20);
    params.temperature = 1.0f;
    params.seed = seed;
    params.sample = sample;
    return fingerprint(engine.generate_with_cache(ids, params));
  };
  std::vector<std::string> alone;
  for (std::uint64_t sample = 0; sample < 6; ++sample) alone.push_back(text(5, sample));
  CHECK(std::set<std::string>(alone.begin(), alone.end()).size() == alone.size());
  std::vector<std::string> together(alone.size());
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    callers.emplace_back([&, i] { together[i] = text(5, i); });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(together == alone);
  CHECK(text(6, 0) != alone[0]);
}
