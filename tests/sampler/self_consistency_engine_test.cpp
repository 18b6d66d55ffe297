// SPDX-License-Identifier: Apache-2.0
// The sampler over a real engine with a tiny random model.
#include <array>
#include <set>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "engine/tiny_engine.h"
#include "incipit/self_consistency.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

namespace {

/// A random model says nothing of sense: the parity of the first token is its answer.
SelfConsistencyOptions parity_vote(std::size_t samples, StopRule stop) {
  SelfConsistencyOptions options;
  options.samples = samples;
  options.stop = stop;
  options.extract = [](std::string_view text) {
    return std::optional<std::string>(text.size() % 2 == 0 ? "even" : "odd");
  };
  return options;
}

GenerateParams params_of(std::uint64_t seed) {
  GenerateParams params;
  params.max_tokens = 10;
  params.ignore_eos = true;
  params.temperature = 1.0f;
  params.seed = seed;
  params.logprobs = 2;
  return params;
}

}  // namespace

TEST_CASE("sample i is sample i, for any number of samples, wave and threads") {
  const TinyModelFile file;
  const std::vector<TokenId> prompt = random_ids(40, 1);
  std::vector<std::string> expected;
  {
    Engine engine(file.options());
    for (std::size_t i = 0; i < 16; ++i) {
      GenerateParams params = params_of(3);
      params.sample = i;
      expected.push_back(fingerprint(engine.generate_with_cache(prompt, params)));
    }
  }
  CHECK(std::set<std::string>(expected.begin(), expected.end()).size() == 16);
  for (const unsigned threads : {1U, 2U}) {
    EngineOptions engine_options = file.options();
    engine_options.threads = threads;
    Engine engine(engine_options);
    for (const std::size_t count : {1U, 2U, 5U, 16U}) {
      for (const std::size_t wave : {0U, 1U, 3U}) {
        auto options = parity_vote(count, stop::None{});
        options.first_wave = options.wave = wave;
        const auto result = SelfConsistencySampler(engine, options).sample(prompt, params_of(3));
        REQUIRE(result.samples.size() == count);
        CHECK(result.stopped_after == count);
        for (std::size_t i = 0; i < count; ++i) {
          REQUIRE(fingerprint(result.samples[i].result) == expected[i]);
          REQUIRE(result.samples[i].status == SampleStatus::kVoted);
        }
        CHECK(result.usage.decoded_tokens == count * 10);
        CHECK(result.usage.prefilled_tokens + result.usage.shared_tokens == count * 40);
      }
    }
  }
}

TEST_CASE("64 samples among 20 other requests in a pool too small for them are the same samples") {
  const TinyModelFile file;
  const std::vector<TokenId> prompt = random_ids(50, 11);
  GenerateParams params = params_of(5);
  params.max_tokens = 100;  // more than is set aside at the start, so that they run short
  std::vector<std::string> expected;
  {
    Engine engine(file.options());
    for (params.sample = 0; params.sample < 64; ++params.sample) {
      expected.push_back(fingerprint(engine.generate(prompt, params)));
    }
    params.sample = 0;
  }
  for (const unsigned threads : {1U, 2U}) {
    EngineOptions small = file.options();
    small.threads = threads;
    small.kv_pool_bytes = 20 * Engine(small).model().pool_bytes_per_block;
    Engine engine(small);
    std::vector<Generation> others;
    for (std::uint32_t i = 0; i < 20; ++i) {
      others.push_back(engine.submit(random_ids(20 + 7 * i, 100 + i), {.max_tokens = 60}));
    }
    for (const bool cached : {false, true}) {
      CAPTURE(threads, cached);
      if (!cached) engine.cache().clear();
      const auto result =
          SelfConsistencySampler(engine, parity_vote(64, stop::None{})).sample(prompt, params);
      REQUIRE(result.samples.size() == 64);
      for (std::size_t i = 0; i < 64; ++i) {
        CAPTURE(i);
        REQUIRE(fingerprint(result.samples[i].result) == expected[i]);
      }
    }
    for (Generation& other : others) other.wait();
    CHECK(engine.stats().preemptions > 0);
    CHECK(engine.cache().stats().blocks_in_use == 0);
  }
}

TEST_CASE("a callback that narrows each token stalls nobody in a small pool") {
  const TinyModelFile file;
  const std::vector<TokenId> prompt = random_ids(50, 12);
  GenerateParams params = params_of(6);
  params.max_tokens = 40;
  params.allowed_tokens = [](std::span<const TokenId> so_far) {
    return random_ids(20, static_cast<std::uint32_t>(so_far.size()));
  };
  std::array<std::vector<std::string>, 2> fingerprints;
  for (const bool small : {false, true}) {
    EngineOptions options = file.options();
    if (small) options.kv_pool_bytes = 10 * Engine(options).model().pool_bytes_per_block;
    Engine engine(options);
    const auto result =
        SelfConsistencySampler(engine, parity_vote(16, stop::None{})).sample(prompt, params);
    for (const Sample& sample : result.samples) {
      fingerprints[small ? 1 : 0].push_back(fingerprint(sample.result));
    }
  }
  CHECK(fingerprints[0].size() == 16);
  CHECK(fingerprints[0] == fingerprints[1]);
}

TEST_CASE("noise in the KV passes through: each sample has its own, and says so") {
  const TinyModelFile file;
  EngineOptions engine_options = file.options();
  engine_options.kv_type = KvType::kF32;
  Engine engine(engine_options);
  const std::vector<TokenId> prompt = random_ids(40, 13);
  auto options = parity_vote(4, stop::None{});
  options.temperatures = {0.0f};  // greedy: nothing but the noise can tell samples apart
  GenerateParams params = params_of(7);
  const auto sample = [&] {
    return SelfConsistencySampler(engine, options).sample(prompt, params);
  };
  const auto exact = sample();
  params.kv_noise = 0.5f;
  const auto noisy = sample();
  std::set<std::string> different;
  for (std::size_t i = 0; i < 4; ++i) {
    const GenerateResult& result = noisy.samples[i].result;
    CHECK(exact.samples[i].result.kv_noise == 0.0f);
    CHECK(fingerprint(exact.samples[i].result) == fingerprint(exact.samples[0].result));
    CHECK(result.kv_noise == 0.5f);
    CHECK(fingerprint(result) != fingerprint(exact.samples[i].result));
    different.insert(fingerprint(result));
    GenerateParams alone = params;
    alone.temperature = 0.0f;
    alone.sample = i;
    CHECK(fingerprint(engine.generate_with_cache(prompt, alone)) == fingerprint(result));
  }
  CHECK(different.size() == 4);
  // What others find in the cache is exact.
  params.kv_noise = 0.0f;
  CHECK(fingerprint(sample().samples[0].result) == fingerprint(exact.samples[0].result));
}

TEST_CASE("a rule stops early with the same tally, however many run at once") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::vector<TokenId> prompt = random_ids(33, 2);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const auto run = [&](StopRule rule, std::size_t wave) {
      auto options = parity_vote(16, rule);
      options.first_wave = options.wave = wave;
      return SelfConsistencySampler(engine, options).sample(prompt, params_of(seed));
    };
    const auto all = run(stop::None{}, 0);
    const auto one_by_one = run(stop::Lossless{}, 1);
    CHECK(one_by_one.answer == all.answer);
    for (const std::size_t wave : {0U, 5U, 16U}) {
      const auto result = run(stop::Lossless{}, wave);
      CHECK(result.answer == all.answer);
      CHECK(result.stopped_after == one_by_one.stopped_after);
      REQUIRE(result.tally.size() == one_by_one.tally.size());
      for (std::size_t i = 0; i < result.tally.size(); ++i) {
        CHECK(result.tally[i].count == one_by_one.tally[i].count);
        CHECK(result.tally[i].key == one_by_one.tally[i].key);
      }
    }
  }
}

TEST_CASE("text and ids are the same prompt, and events carry the whole text") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::string front = "The lighthouse keeper wrote a letter. ", question = "What did he say?";
  const SelfConsistencySampler sampler(engine, parity_vote(4, stop::None{}));
  std::vector<std::string> texts(4);
  const auto thread = std::this_thread::get_id();
  bool other_thread = false;
  const auto by_text = sampler.sample(front, question, params_of(1), [&](const SampleEvent& event) {
    other_thread = other_thread || std::this_thread::get_id() != thread;
    if (event.kind == SampleEvent::Kind::kText) texts[event.sample] += event.text;
    return true;
  });
  const auto by_ids = sampler.sample(engine.tokenize(front, question), params_of(1));
  CHECK_FALSE(other_thread);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(texts[i] == by_text.samples[i].result.text);
    CHECK(fingerprint(by_text.samples[i].result) == fingerprint(by_ids.samples[i].result));
  }
}

TEST_CASE("errors and ends of an engine come through, and it works on") {
  const TinyModelFile file;
  Engine engine(file.options());
  const SelfConsistencySampler sampler(engine, parity_vote(4, stop::None{}));
  const std::vector<TokenId> prompt = random_ids(20, 3);
  const std::vector<TokenId> too_long = random_ids(engine.model().context + 1, 3);
  try {
    sampler.sample(too_long, params_of(1));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kPromptTooLong);
  }
  GenerateParams stopped = params_of(1);
  std::stop_source source;
  stopped.stop = source.get_token();
  const auto result = sampler.sample(prompt, stopped, [&](const SampleEvent&) {
    source.request_stop();
    return true;
  });
  CHECK(result.end == SamplingEnd::kStopped);
  CHECK(result.stopped_after < 4);
  CHECK(sampler.sample(prompt, params_of(1)).stopped_after == 4);
  CHECK_THROWS_AS(SelfConsistencySampler(engine, parity_vote(0, stop::None{})), Error);
}

TEST_CASE("nothing runs any more when an exception has passed through") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::vector<TokenId> prompt = random_ids(40, 5);
  const auto give_up = [] { throw std::runtime_error("no more"); };
  const auto check = [&](const SelfConsistencyOptions& options, const GenerateParams& params,
                         const SampleEventCallback& on_event) {
    const SelfConsistencySampler sampler(engine, options);
    CHECK_THROWS_WITH(sampler.sample(prompt, params, on_event), "no more");
    CHECK(engine.cache().stats().blocks_in_use == 0);
  };
  auto options = parity_vote(8, stop::None{});
  GenerateParams params = params_of(2);
  params.max_tokens = 60;
  using Kind = SampleEvent::Kind;
  for (const Kind kind : {Kind::kText, Kind::kSampleDone, Kind::kVoteChanged, Kind::kStopped}) {
    check(options, params, [&](const SampleEvent& event) {
      if (event.kind == kind) give_up();
      return true;
    });
  }
  auto throwing = options;
  throwing.extract = [&](std::string_view) -> std::optional<std::string> {
    give_up();
    return {};
  };
  check(throwing, params, {});
  throwing = options;
  throwing.key = [&](std::string_view) -> std::optional<std::string> {
    give_up();
    return {};
  };
  check(throwing, params, {});
  throwing = options;
  throwing.score = [&](const Sample&) {
    give_up();
    return 0.0;
  };
  check(throwing, params, {});
  params.on_prefill = [&](std::size_t, std::size_t) { give_up(); };
  check(options, params, {});
  params.on_prefill = {};
  // In the middle of a wave: the engine asks for what may follow when a sample is submitted.
  int asked = 0;
  params.allowed_tokens = [&](std::span<const TokenId> so_far) -> std::vector<TokenId> {
    if (so_far.empty() && ++asked == 5) give_up();
    return {};
  };
  check(options, params, {});
  CHECK(asked == 5);
}

TEST_CASE("two threads may sample at once") {
  const TinyModelFile file;
  Engine engine(file.options());
  const SelfConsistencySampler sampler(engine, parity_vote(6, stop::None{}));
  const std::vector<TokenId> prompt = random_ids(30, 4);
  const auto text_of = [&](std::uint64_t seed) {
    std::string out;
    const auto result = sampler.sample(prompt, params_of(seed));
    for (const Sample& sample : result.samples) out += fingerprint(sample.result) + '\n';
    return out;
  };
  const std::vector<std::string> alone = {text_of(1), text_of(2)};
  std::vector<std::string> together(2);
  {
    std::jthread other([&] { together[1] = text_of(2); });
    together[0] = text_of(1);
  }
  CHECK(together == alone);
}
