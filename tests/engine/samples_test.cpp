// SPDX-License-Identifier: Apache-2.0
// Many samples of one prompt, and many requests in a small pool: promises 1 and 5.
#include <atomic>
#include <thread>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

namespace {

GenerateParams sample_params(const Engine& engine, std::uint64_t sample, std::size_t tokens) {
  GenerateParams params = whole_rows(engine, tokens);
  params.temperature = 0.9f;
  params.seed = 7;
  params.sample = sample;
  return params;
}

// The samples of a prompt, submitted together.
std::vector<std::string> together(Engine& engine, std::span<const TokenId> prompt, std::size_t n,
                                  std::size_t tokens) {
  std::vector<Generation> generations;
  for (std::size_t i = 0; i < n; ++i) {
    generations.push_back(engine.submit(prompt, sample_params(engine, i, tokens)));
  }
  std::vector<std::string> texts;
  for (Generation& generation : generations) texts.push_back(fingerprint(generation.wait()));
  return texts;
}

std::vector<std::string> one_by_one(Engine& engine, std::span<const TokenId> prompt, std::size_t n,
                                    std::size_t tokens) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < n; ++i) {
    texts.push_back(fingerprint(engine.generate(prompt, sample_params(engine, i, tokens))));
  }
  return texts;
}

std::vector<std::string> first(std::vector<std::string> texts, std::size_t n) {
  texts.resize(n);
  return texts;
}

}  // namespace

TEST_CASE("sample i is sample i, for any number of samples, threads, and neighbours") {
  const TinyModelFile file({.type = tensor::DType::kQ4_1});
  const auto prompt = random_ids(70, 1);
  std::vector<std::string> expected;
  for (const unsigned threads : {1u, 2u}) {
    EngineOptions options = file.options();
    options.threads = threads;
    Engine engine(options);
    if (expected.empty()) expected = one_by_one(engine, prompt, 64, 6);
    for (const std::size_t n : {1u, 2u, 5u, 16u, 64u}) {
      engine.cache().clear();
      CAPTURE(n, threads);
      CHECK(together(engine, prompt, n, 6) == first(expected, n));
      CHECK(together(engine, prompt, n, 6) == first(expected, n));  // with the prefix cached
    }
    std::vector<Generation> others;
    for (std::uint32_t i = 0; i < 20; ++i) {
      others.push_back(engine.submit(random_ids(20 + 7 * i, 100 + i), {.max_tokens = 60}));
    }
    engine.cache().clear();
    CHECK(together(engine, prompt, 5, 6) == first(expected, 5));
  }
}

TEST_CASE("samples over a shared prefix equal independent ones, bit for bit") {
  const TinyModelFile file({.layers = 1, .context = 4400, .type = tensor::DType::kQ8_0});
  EngineOptions options = file.options();
  Engine engine(options);
  // A first token stands in front of the shared rest, so that no prompt is empty.
  for (const std::size_t length : {0u, 1u, 15u, 16u, 17u, 255u, 256u, 1023u, 1024u, 1025u, 4000u}) {
    const auto prompt = random_ids(length + 1, 40 + static_cast<std::uint32_t>(length));
    const std::size_t n = length == 17 ? 64 : length >= 4000 ? 3 : 5;
    CAPTURE(length, n);
    const auto expected = one_by_one(engine, prompt, n, 20);
    engine.cache().clear();
    const std::uint64_t before = engine.stats().reused_tokens;
    CHECK(together(engine, prompt, n, 20) == expected);
    // All but the first have found its blocks: they did not compute them side by side.
    CHECK(engine.stats().reused_tokens - before >= (n - 1) * (length / 16 * 16));
  }
}

TEST_CASE("n samples hold the prefix once, and at most a block each besides their own text") {
  const TinyModelFile file({.context = 2048});
  Engine engine(file.options());
  constexpr std::size_t kSamples = 16, kTokens = 40, kPrompt = 1000;
  const auto prompt = random_ids(kPrompt, 9);
  std::uint64_t most = 0;
  std::vector<Generation> generations;
  for (std::size_t i = 0; i < kSamples; ++i) {
    GenerateParams params = sample_params(engine, i, kTokens);
    params.logprobs = 0;
    params.on_text = [&](std::string_view) {
      most = std::max(most, engine.cache().stats().blocks_in_use);
      return true;
    };
    generations.push_back(engine.submit(prompt, params));
  }
  for (Generation& generation : generations) generation.wait();
  CHECK(most <= kPrompt / 16 + kSamples * ((kTokens + 15) / 16 + 1));
  CHECK(most >= kPrompt / 16 + kSamples);
}

TEST_CASE("preemption changes no text, and nobody starves") {
  const TinyModelFile file({.type = tensor::DType::kQ4_0});
  EngineOptions options = file.options();
  const std::size_t block = Engine(options).model().pool_bytes_per_block;
  const auto prompt = random_ids(50, 11);
  std::vector<std::string> expected;
  {
    Engine engine(options);
    expected = one_by_one(engine, prompt, 8, 200);
  }
  options.kv_pool_bytes = 24 * block;  // not two whole samples, shared front and all
  Engine engine(options);
  CHECK(together(engine, prompt, 8, 200) == expected);
  CHECK(engine.stats().preemptions > 0);
  CHECK(engine.cache().stats().blocks_in_use == 0);
  // Without a cache nothing is shared, and all of it is computed again.
  std::vector<std::thread> callers;
  std::vector<std::string> got(6);
  for (std::size_t i = 0; i < got.size(); ++i) {
    callers.emplace_back(
        [&, i] { got[i] = fingerprint(engine.generate(prompt, sample_params(engine, i, 200))); });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(got == first(expected, got.size()));
}

TEST_CASE("scores survive a preemption") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.prefill_chunk = 16;
  options.kv_pool_bytes = 24 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  const auto ids = random_ids(200, 12);
  const std::vector<float> expected = engine.score(ids);
  std::vector<float> scores;
  Generation older = engine.submit(random_ids(60, 13), {.max_tokens = 250, .ignore_eos = true});
  std::thread scorer([&] { scores = engine.score(ids); });
  older.wait();
  scorer.join();
  CHECK(scores == expected);
}

TEST_CASE("a pool of a few blocks serves eight threads") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.kv_pool_bytes = 7 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (std::uint32_t t = 0; t < 8; ++t) {
    callers.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 6; ++i) {
        const auto ids = random_ids(20 + 5 * (t % 3), t % 3);
        GenerateParams params = sample_params(engine, i, 50);
        params.logprobs = 1;
        if (engine.generate_with_cache(ids, params).token_ids.size() != 50) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
  CHECK(engine.cache().stats().blocks_in_use == 0);
}

TEST_CASE("two hundred requests share a small pool without deadlock") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.kv_pool_bytes = 30 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  std::vector<Generation> generations;
  for (std::uint32_t i = 0; i < 200; ++i) {
    GenerateParams params = sample_params(engine, i, 20 + i % 60);
    params.logprobs = 0;
    params.cache.salt = std::string(1, i % 3 == 0 ? 'a' : 'b');
    generations.push_back(engine.submit(random_ids(10 + i % 90, i % 11), params));
  }
  std::size_t done = 0;
  for (std::size_t i = 0; i < generations.size(); ++i) {
    if (generations[i].wait().token_ids.size() == 20 + i % 60) ++done;
  }
  CHECK(done == 200);
  CHECK(engine.cache().stats().blocks_in_use == 0);
}

TEST_CASE("who reads nothing for long gives its room to others, and goes on later") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.kv_pool_bytes = 20 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  const auto prompt = random_ids(100, 14);
  GenerateParams params = whole_rows(engine, 200);
  const std::string expected = fingerprint(engine.generate(prompt, params));
  params.on_text = [](std::string_view) { return true; };
  Generation slow = engine.submit(prompt, params);  // fills its mailbox and stands
  for (std::uint32_t i = 0; i < 3; ++i) {
    CHECK(engine.generate(random_ids(250, 20 + i), {.max_tokens = 40, .ignore_eos = true})
              .token_ids.size() == 40);
  }
  CHECK(engine.stats().preemptions > 0);
  CHECK(fingerprint(slow.wait()) == expected);
}

TEST_CASE("what was forgotten is not shared from a request that still runs") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  Engine engine(options);
  const auto prompt = random_ids(44, 15);
  GenerateParams params = {.max_tokens = 300, .ignore_eos = true};
  params.on_text = [](std::string_view) { return true; };
  Generation running = engine.submit(prompt, params);  // stands with a full mailbox
  while (engine.stats().new_tokens < 64) std::this_thread::yield();
  CHECK(engine.generate_with_cache(prompt, {.max_tokens = 1}).reused_tokens == 43);
  engine.cache().clear();
  CHECK(engine.generate_with_cache(prompt, {.max_tokens = 1}).reused_tokens == 0);
}

TEST_CASE("who waits for a prefix goes on where the one who computes it ends early") {
  const TinyModelFile file({.context = 2048});
  EngineOptions options = file.options();
  options.prefill_chunk = 16;
  Engine engine(options);
  const auto prompt = random_ids(1500, 16);
  const std::string expected = fingerprint(engine.generate(prompt, whole_rows(engine, 4)));
  Generation leader = engine.submit(prompt, whole_rows(engine, 4));
  const std::uint64_t steps = engine.stats().steps;
  Generation follower = engine.submit(prompt, whole_rows(engine, 4));
  while (engine.stats().steps < steps + 5) std::this_thread::yield();
  leader.cancel();
  const GenerateResult ended = leader.wait();
  CHECK(ended.finish == FinishReason::kStopped);
  const GenerateResult result = follower.wait();
  CHECK(fingerprint(result) == expected);
  CHECK(result.reused_tokens >= 16);    // what the other one had committed
  CHECK(result.reused_tokens <= 1499);  // and no more than there is
}

TEST_CASE("nobody waits for a prefix whose request waits for its caller") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.prefill_chunk = 16;
  Engine engine(options);
  auto prompt = random_ids(300, 17);
  const std::string expected = fingerprint(engine.generate(prompt, whole_rows(engine, 4)));
  GenerateParams params = whole_rows(engine, 4);
  params.allowed_tokens = [](std::span<const TokenId>) { return std::vector<TokenId>{}; };
  // It gets its first token from the shared front, and then waits for a poll to go on.
  const std::uint64_t begun = engine.stats().first_tokens;
  Generation stalled = engine.submit(std::span(prompt).first(40), params);
  while (engine.stats().first_tokens == begun) std::this_thread::yield();
  CHECK(fingerprint(engine.generate_with_cache(prompt, whole_rows(engine, 4))) == expected);
  CHECK(stalled.wait().token_ids.size() == 4);
}

TEST_CASE("requests of different salts share nothing while they run") {
  const TinyModelFile file({.context = 2048});
  EngineOptions options = file.options();
  options.prefill_chunk = 64;
  Engine engine(options);
  const auto prompt = random_ids(700, 18);
  std::vector<Generation> generations;
  for (const char* salt : {"a", "b", "a", "b"}) {
    GenerateParams params = whole_rows(engine, 4);
    params.cache.salt = salt;
    generations.push_back(engine.submit(prompt, params));
  }
  std::vector<std::size_t> reused;
  for (Generation& generation : generations) reused.push_back(generation.wait().reused_tokens);
  // The first of each salt computes it, the second of each takes its blocks.
  CHECK(reused[0] == 0);
  CHECK(reused[1] == 0);
  CHECK(reused[2] >= 688);
  CHECK(reused[3] >= 688);
}
