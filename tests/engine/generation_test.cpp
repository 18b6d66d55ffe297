// SPDX-License-Identifier: Apache-2.0
// Engine::submit() and what it returns.
#include <atomic>
#include <stop_token>
#include <thread>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;
using namespace std::chrono_literals;

namespace {

const TinyModelFile& model_file() {
  static const TinyModelFile file;
  return file;
}

GenerateParams long_text(std::size_t tokens = 40) {
  return {.max_tokens = tokens, .ignore_eos = true};
}

}  // namespace

TEST_CASE("a submitted request gives what the blocking call gives") {
  Engine engine(model_file().options());
  const auto ids = random_ids(50, 1);
  const std::string expected = fingerprint(engine.generate(ids, whole_rows(engine, 9)));
  Generation generation = engine.submit(ids, whole_rows(engine, 9));
  CHECK(fingerprint(generation.wait()) == expected);
  const std::string text = "The same from text.";
  CHECK(engine.submit(text.substr(0, 5), text.substr(5), long_text()).wait().token_ids ==
        engine.generate(text, long_text()).token_ids);
}

TEST_CASE("pieces of a generation add up to its text") {
  Engine engine(model_file().options());
  const auto ids = random_ids(20, 2);
  Generation generation = engine.submit(ids, long_text(120));
  std::string text;
  while (const auto piece = generation.next()) {
    CHECK_FALSE(piece->empty());
    text += *piece;
  }
  CHECK(generation.poll());
  CHECK(generation.next() == std::nullopt);
  const GenerateResult result = generation.wait();
  CHECK(text == result.text);
  CHECK(result.token_ids.size() == 120);
}

TEST_CASE("who comes late for the text holds nothing up") {
  Engine engine(model_file().options());
  Generation generation = engine.submit(random_ids(20, 3), long_text(300));
  while (!generation.poll()) std::this_thread::sleep_for(1ms);
  CHECK(engine.stats().new_tokens == 300);
  std::string text;
  while (const auto piece = generation.next()) text += *piece;
  CHECK(text == generation.wait().text);
}

TEST_CASE("callbacks of a generation run on the thread that asks for it") {
  Engine engine(model_file().options());
  const auto self = std::this_thread::get_id();
  bool elsewhere = false;
  std::string seen;
  GenerateParams params = long_text();
  params.on_text = [&](std::string_view piece) {
    elsewhere = elsewhere || std::this_thread::get_id() != self;
    seen += piece;
    return true;
  };
  std::size_t allowed_calls = 0;
  bool ordered = true;
  params.allowed_tokens = [&](std::span<const TokenId> so_far) {
    ordered = ordered && so_far.size() == allowed_calls++;
    return std::vector<TokenId>{20, 21, 22};
  };
  const GenerateResult result = engine.submit(random_ids(20, 4), params).wait();
  CHECK(seen == result.text);
  CHECK_FALSE(elsewhere);
  CHECK(ordered);
  CHECK(std::ranges::all_of(result.token_ids, [](TokenId id) { return id >= 20 && id <= 22; }));
  params.on_text = [](std::string_view) -> bool { throw std::runtime_error("reader"); };
  Generation failing = engine.submit(random_ids(20, 4), params);
  CHECK_THROWS_WITH(failing.wait(), "reader");
}

TEST_CASE("a generation can be cancelled at every state, and gives its blocks back") {
  EngineOptions options = model_file().options();
  options.prefill_chunk = 32;
  options.kv_pool_bytes = 40 * Engine(options).model().pool_bytes_per_block;
  Engine engine(options);
  const auto ids = random_ids(300, 5);
  SECTION("right away, while it prefills, while it decodes, when it is over") {
    for (const auto delay : {0us, 200us, 1000us, 5000us, 50000us}) {
      Generation generation = engine.submit(ids, long_text());
      std::this_thread::sleep_for(delay);
      generation.cancel();
      const GenerateResult result = generation.wait();
      CHECK(result.token_ids.size() <= 40);
      CHECK((result.finish == FinishReason::kStopped || result.token_ids.size() == 40));
    }
  }
  SECTION("while it waits for room, and by going out of scope") {
    std::vector<Generation> generations;
    for (std::uint32_t i = 0; i < 6; ++i) {
      generations.push_back(engine.submit(random_ids(300, 10 + i), long_text()));
    }
    generations.pop_back();
    generations.back().cancel();
    CHECK(generations.back().wait().finish == FinishReason::kStopped);
    generations.clear();
  }
  SECTION("by its stop token and by its timeout, read or not") {
    std::stop_source source;
    GenerateParams params = long_text(200);
    params.stop = source.get_token();
    Generation stopped = engine.submit(ids, params);
    params = long_text(200);
    params.timeout = 1ms;
    Generation late = engine.submit(ids, params);
    source.request_stop();
    CHECK(stopped.wait().finish == FinishReason::kStopped);
    CHECK(late.wait().finish == FinishReason::kTimeout);
  }
  CHECK(engine.cache().stats().blocks_in_use == 0);
}

TEST_CASE("bad requests are refused by submit itself") {
  Engine engine(model_file().options());
  CHECK_THROWS_AS(engine.submit(std::span<const TokenId>{}), Error);
  CHECK_THROWS_AS(engine.submit(random_ids(2000, 1)), Error);
  GenerateParams params;
  params.temperature = -1.0f;
  CHECK_THROWS_AS(engine.submit(random_ids(5, 1), params), Error);
}

TEST_CASE("a request that fails in the middle of a batch fails alone") {
  Engine engine(model_file().options());
  const auto ids = random_ids(40, 6);
  const std::string expected = fingerprint(engine.generate(ids, whole_rows(engine, 30)));
  Generation good = engine.submit(ids, whole_rows(engine, 30));
  GenerateParams bad = long_text();
  // The fourth choice is left without any token.
  bad.allowed_tokens = [](std::span<const TokenId> so_far) {
    return so_far.size() < 3 ? std::vector<TokenId>{} : std::vector<TokenId>{1 << 20};
  };
  Generation failing = engine.submit(ids, bad);
  CHECK_THROWS_AS(failing.wait(), Error);
  CHECK(fingerprint(good.wait()) == expected);
  CHECK(engine.cache().stats().blocks_in_use == 0);
  CHECK(fingerprint(engine.generate_with_cache(ids, whole_rows(engine, 30))) == expected);
}

TEST_CASE("log-probabilities of what was sampled from add up to one") {
  Engine engine(model_file().options());
  GenerateParams params = long_text(8);
  params.temperature = 0.7f;
  params.top_k = 5;
  params.logprobs = engine.model().vocabulary;
  params.logprobs_of = LogprobsOf::kSampled;
  const auto ids = random_ids(30, 7);
  const GenerateResult result = engine.generate(ids, params);
  REQUIRE(result.top.size() == 8);
  for (std::size_t i = 0; i < result.top.size(); ++i) {
    CHECK(result.top[i].size() == 5);
    double sum = 0;
    bool found = false;
    for (const TokenLogprob& entry : result.top[i]) {
      sum += std::exp(static_cast<double>(entry.logprob));
      found = found || (entry.id == result.token_ids[i] && entry.logprob == result.logprobs[i]);
    }
    CHECK(sum == Approx(1.0).epsilon(1e-5));
    CHECK(found);
  }
  params.temperature = 0.0f;
  CHECK(engine.generate(ids, params).logprobs == std::vector<float>(8, 0.0f));
  params.logprobs_of = LogprobsOf::kRaw;
  CHECK(engine.generate(ids, params).logprobs.front() < 0.0f);
}

TEST_CASE("tokens of messages add up to those of the rendered conversation") {
  Engine engine(model_file().options());
  if (!engine.model().chat) {
    CHECK_THROWS_AS(engine.render(std::vector<Message>{{.text = "x"}}), Error);
  }
  const TokenCounter counter = engine.token_counter();
  CHECK(counter.text("") == 0);
  CHECK(counter.text("hello world") == engine.tokenize(std::string_view("hello world")).size());
}

TEST_CASE("submitted requests are validated as others are") {
  PrefixCacheOptions cache;
  cache.validate_every = 1;
  Engine engine(model_file().options(), std::make_shared<PrefixCache>(cache));
  const auto ids = random_ids(60, 8);
  const std::string expected = fingerprint(engine.generate(ids, whole_rows(engine, 4)));
  CHECK(fingerprint(engine.submit(ids, whole_rows(engine, 4)).wait()) == expected);
  CHECK(fingerprint(engine.submit(ids, whole_rows(engine, 4)).wait()) == expected);
  CHECK(engine.cache().stats().validations >= 1);
  CHECK(engine.cache().stats().mismatches == 0);
}

TEST_CASE("who has been told to stop before it begins computes nothing") {
  const TinyModelFile file;
  Engine engine(file.options());
  std::stop_source stopped;
  stopped.request_stop();
  for (int i = 0; i < 200; ++i) {
    GenerateParams params;
    params.max_tokens = 1;
    params.stop = stopped.get_token();
    REQUIRE(engine.generate(random_ids(8, 2), params).finish == FinishReason::kStopped);
  }
  CHECK(engine.stats().steps == 0);
}
