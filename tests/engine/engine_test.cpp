// SPDX-License-Identifier: Apache-2.0
#include "incipit/engine.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <fstream>
#include <mutex>
#include <thread>

#include "engine/tiny_engine.h"
#include "support/catch.h"
#include "support/temporary_directory.h"
#include "support/tiny_model.h"

using namespace incipit;
using namespace incipit::test;
using namespace std::chrono_literals;

namespace {

template <class Call>
Error error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  throw std::runtime_error("no error came");
}

bool mentions(const Error& error, std::string_view words) {
  return std::string_view(error.what()).find(words) != std::string_view::npos;
}

const TinyModelFile& model_file() {
  static const TinyModelFile file({.type = tensor::DType::kQ4_1});
  return file;
}

}  // namespace

TEST_CASE("the joined prompt is tokenized as one") {
  Engine engine(model_file().options());
  const std::string text = "Good heavens, the theory of the thing then!";
  const GenerateParams params = whole_rows(engine, 8);
  const std::string expected = fingerprint(engine.generate(text, params));
  for (std::size_t split = 0; split <= text.size(); ++split) {
    const auto result = engine.generate_with_cache(std::string_view(text).substr(0, split),
                                                   std::string_view(text).substr(split), params);
    CHECK(fingerprint(result) == expected);
    CHECK(result.prompt_ids == engine.tokenize(text));
  }
}

TEST_CASE("text streams in whole characters and adds up to the result") {
  Engine engine(model_file().options());
  const auto caller = std::this_thread::get_id();
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::string streamed;
    GenerateParams params{.max_tokens = 60, .temperature = 1.5f, .seed = seed};
    params.on_text = [&](std::string_view piece) {
      CHECK(std::this_thread::get_id() == caller);
      CHECK_FALSE(piece.empty());
      // A piece never begins inside a character.
      CHECK((static_cast<unsigned char>(piece.front()) & 0xc0) != 0x80);
      streamed += piece;
      return true;
    };
    const auto result = engine.generate("abc", params);
    CHECK(streamed == result.text);
    CHECK(result.text == engine.detokenize(result.token_ids));
  }
}

TEST_CASE("a reader that returns false ends the request with what it saw") {
  Engine engine(model_file().options());
  GenerateParams params = whole_rows(engine, 200);
  std::string seen;
  int pieces = 0;
  params.on_text = [&](std::string_view piece) {
    seen += piece;
    return ++pieces < 3;
  };
  const auto result = engine.generate("abc", params);
  CHECK(result.finish == FinishReason::kStopped);
  CHECK(result.text == seen);
  CHECK(pieces == 3);
  CHECK(result.token_ids.size() == result.logprobs.size());
  CHECK(result.token_ids.size() < 200);
}

TEST_CASE("stop strings end the text before them, also where they span tokens") {
  Engine engine(model_file().options());
  GenerateParams params{.max_tokens = 60, .ignore_eos = true, .temperature = 1.0f, .seed = 3};
  const auto whole = engine.generate("abc", params);
  REQUIRE(whole.text.size() > 20);
  const std::string stop = whole.text.substr(10, 3);
  const std::size_t at = whole.text.find(stop);
  params.stop_strings = {"never comes up", stop};
  std::string streamed;
  params.on_text = [&](std::string_view piece) {
    streamed += piece;
    return true;
  };
  const auto result = engine.generate("abc", params);
  CHECK(result.finish == FinishReason::kStopString);
  CHECK(result.text == whole.text.substr(0, at));
  CHECK(streamed == result.text);
  CHECK(result.token_ids.size() < whole.token_ids.size());

  params.min_tokens = 60;
  CHECK(engine.generate("abc", params).text == whole.text);
}

TEST_CASE("the end of sequence ends, unless it is ignored or too early") {
  Engine engine(model_file().options());
  const auto ids = engine.tokenize("abc");
  // Find the token that the tiny model's configuration calls the end: forcing each in turn.
  std::vector<TokenId> ends;
  for (TokenId id = 0; id < 10; ++id) {
    GenerateParams params{.max_tokens = 2, .logit_bias = {{id, 1000.0f}}};
    if (engine.generate(ids, params).finish == FinishReason::kEnd) ends.push_back(id);
  }
  REQUIRE_FALSE(ends.empty());
  GenerateParams params{.max_tokens = 7, .logit_bias = {{ends[0], 1000.0f}}};
  auto result = engine.generate(ids, params);
  CHECK(result.token_ids.empty());
  CHECK(result.text.empty());
  params.ignore_eos = true;
  result = engine.generate(ids, params);
  CHECK(result.finish == FinishReason::kMaxTokens);
  CHECK(result.token_ids == std::vector<TokenId>(7, ends[0]));
  params.ignore_eos = false;
  params.min_tokens = 4;
  result = engine.generate(ids, params);
  CHECK(result.finish == FinishReason::kEnd);
  CHECK(result.token_ids.size() == 4);
}

TEST_CASE("allowed tokens narrow each choice, on the calling thread") {
  Engine engine(model_file().options());
  const std::vector<TokenId> path = {50, 60, 70, 80, 90};
  std::vector<std::size_t> sizes;
  GenerateParams params{.max_tokens = 5, .ignore_eos = true};
  params.allowed_tokens = [&](std::span<const TokenId> so_far) {
    CHECK(std::equal(so_far.begin(), so_far.end(), path.begin()));
    sizes.push_back(so_far.size());
    return std::vector<TokenId>{path[so_far.size()]};
  };
  CHECK(engine.generate("abc", params).token_ids == path);
  CHECK(sizes == std::vector<std::size_t>{0, 1, 2, 3, 4});
  const auto free_run = engine.generate("abc", {.max_tokens = 5, .ignore_eos = true});
  params.allowed_tokens = [](std::span<const TokenId>) { return std::vector<TokenId>(); };
  CHECK(engine.generate("abc", params).token_ids == free_run.token_ids);
  params.allowed_tokens = [](std::span<const TokenId>) { return std::vector<TokenId>{1 << 20}; };
  CHECK(error_of([&] { engine.generate("abc", params); }).code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("prefill progress counts up to the prompt's tokens") {
  EngineOptions options = model_file().options();
  options.prefill_chunk = 10;
  Engine engine(options);
  const auto ids = random_ids(45, 1);
  std::vector<std::size_t> done;
  GenerateParams params{.max_tokens = 1};
  params.on_prefill = [&](std::size_t tokens, std::size_t total) {
    CHECK(total == 45);
    done.push_back(tokens);
  };
  engine.generate_with_cache(ids, params);
  REQUIRE_FALSE(done.empty());
  CHECK(std::is_sorted(done.begin(), done.end()));
  CHECK(done.back() == 45);
  done.clear();
  engine.generate_with_cache(ids, params);
  CHECK(done.front() >= 32);
  CHECK(done.back() == 45);
}

TEST_CASE("a callback's exception reaches the caller and leaves the engine usable") {
  Engine engine(model_file().options());
  struct Oops {};
  GenerateParams params{.max_tokens = 50, .ignore_eos = true};
  params.on_text = [](std::string_view) -> bool { throw Oops(); };
  CHECK_THROWS_AS(engine.generate("abc", params), Oops);
  params.on_text = {};
  params.on_prefill = [](std::size_t, std::size_t) { throw Oops(); };
  CHECK_THROWS_AS(engine.generate_with_cache("abc", "", params), Oops);
  params.on_prefill = {};
  params.allowed_tokens = [](std::span<const TokenId> so_far) -> std::vector<TokenId> {
    if (so_far.size() == 2) throw Oops();
    return {};
  };
  CHECK_THROWS_AS(engine.generate("abc", params), Oops);
  CHECK(engine.generate("abc", {.max_tokens = 3, .ignore_eos = true}).token_ids.size() == 3);
  CHECK(engine.cache().stats().blocks_in_use == 0);
}

TEST_CASE("timeout and stop token end a request with what there is") {
  Engine engine(model_file().options());
  GenerateParams params{.max_tokens = 400, .ignore_eos = true};
  params.timeout = 0ms;
  auto result = engine.generate("abc", params);
  CHECK(result.finish == FinishReason::kTimeout);

  std::stop_source source;
  params.timeout = {};
  params.stop = source.get_token();
  int pieces = 0;
  params.on_text = [&](std::string_view) {
    if (++pieces == 2) source.request_stop();
    return true;
  };
  result = engine.generate("abc", params);
  CHECK(result.finish == FinishReason::kStopped);
  CHECK(result.token_ids.size() < 400);
  CHECK(result.text == engine.detokenize(result.token_ids));

  result = engine.generate("abc", params);  // stopped before it began
  CHECK(result.finish == FinishReason::kStopped);
}

TEST_CASE("a full context ends the text") {
  EngineOptions options = model_file().options();
  options.max_context = 40;
  Engine engine(options);
  const auto result = engine.generate(random_ids(30, 2), {.max_tokens = 1000, .ignore_eos = true});
  CHECK(result.finish == FinishReason::kContextFull);
  CHECK(result.token_ids.size() == 10);
  CHECK(engine.generate(random_ids(39, 2), {.ignore_eos = true}).token_ids.size() == 1);
  const Error error = error_of([&] { engine.generate(random_ids(40, 2)); });
  CHECK(error.code() == ErrorCode::kPromptTooLong);
  CHECK(mentions(error, "40"));
  CHECK(engine.score(random_ids(40, 2)).size() == 40);
  CHECK(error_of([&] { engine.score(random_ids(41, 2)); }).code() == ErrorCode::kPromptTooLong);
}

TEST_CASE("max_tokens 0 prefills only") {
  Engine engine(model_file().options());
  const auto ids = random_ids(50, 3);
  const auto result = engine.generate_with_cache(ids, {.max_tokens = 0});
  CHECK(result.token_ids.empty());
  CHECK(result.finish == FinishReason::kMaxTokens);
  CHECK(engine.generate_with_cache(ids, {.max_tokens = 1}).reused_tokens == 48);
}

TEST_CASE("scores are the log-probabilities that generation reports") {
  EngineOptions options = model_file().options();
  options.prefill_chunk = 7;
  Engine engine(options);
  const auto prompt = random_ids(20, 4);
  const auto result = engine.generate(prompt, whole_rows(engine, 15));
  auto ids = prompt;
  ids.insert(ids.end(), result.token_ids.begin(), result.token_ids.end());
  const auto scores = engine.score(ids);
  REQUIRE(scores.size() == ids.size());
  CHECK(scores[0] == 0.0f);
  for (std::size_t i = 0; i < result.token_ids.size(); ++i) {
    CHECK(scores[prompt.size() + i] == result.logprobs[i]);
    CHECK(result.top[i][0].id == result.token_ids[i]);
    CHECK(result.top[i][0].logprob == result.logprobs[i]);
  }
  CHECK(engine.score(std::vector<TokenId>{5}) == std::vector<float>{0.0f});
  CHECK(engine.cache().stats().blocks_cached == 0);
}

TEST_CASE("a bad request is refused with what to do, and the engine stays usable") {
  const auto options = model_file().options();
  Engine engine(options);
  CHECK(error_of([&] { engine.generate(""); }).code() == ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.generate_with_cache("", ""); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.generate(std::span<const TokenId>()); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.score({}); }).code() == ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.generate(std::vector<TokenId>{-1}); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.generate(std::vector<TokenId>{1 << 20}); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.detokenize(std::vector<TokenId>{-1}); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.generate("a", {.top_p = 2.0f}); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(error_of([&] { engine.generate_with_cache(std::span<const Message>()); }).code() ==
        ErrorCode::kInvalidArgument);
  CHECK(engine.generate("abc", {.max_tokens = 3, .ignore_eos = true}).token_ids.size() == 3);
}

TEST_CASE("bad options are refused with what to do") {
  const auto refused = [](auto&& spoil) {
    EngineOptions options = model_file().options();
    spoil(options);
    return error_of([&] { Engine engine(options); });
  };
  CHECK(refused([](auto& o) { o.model = ""; }).code() == ErrorCode::kInvalidArgument);
  CHECK(refused([](auto& o) { o.model = "/nonexistent/model.gguf"; }).code() ==
        ErrorCode::kModelUnreadable);
  CHECK(refused([](auto& o) { o.kv_pool_bytes = 10; }).code() == ErrorCode::kInvalidArgument);
  CHECK(refused([](auto& o) { o.prefill_chunk = 0; }).code() == ErrorCode::kInvalidArgument);
  const Error error = refused([](auto& o) { o.max_context = 1 << 20; });
  CHECK(error.code() == ErrorCode::kInvalidArgument);
  CHECK(mentions(error, "512"));
}

TEST_CASE("a pool too small for one request is an error that names the size it takes") {
  EngineOptions options = model_file().options();
  options.kv_pool_bytes = 1 << 20;
  const std::size_t block = Engine(options).model().pool_bytes_per_block;
  options.kv_pool_bytes = 3 * block;
  Engine engine(options);
  const Error error = error_of([&] { engine.generate(random_ids(40, 5), {.max_tokens = 9}); });
  CHECK(error.code() == ErrorCode::kOutOfMemory);
  CHECK(mentions(error, std::to_string(4 * block)));
  CHECK(mentions(error, "kv_pool_bytes"));
  CHECK(
      engine.generate(random_ids(40, 5), {.max_tokens = 8, .ignore_eos = true}).token_ids.size() ==
      8);
}

TEST_CASE("requests wait for room in the pool") {
  EngineOptions options = model_file().options();
  const std::size_t block = Engine(options).model().pool_bytes_per_block;
  options.kv_pool_bytes = 5 * block;
  Engine engine(options);
  std::vector<std::thread> callers;
  std::atomic<int> done = 0;
  for (std::uint32_t i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      const auto result =
          engine.generate_with_cache(random_ids(30 + i, i), {.max_tokens = 20, .ignore_eos = true});
      done += result.token_ids.size() == 20 ? 1 : 0;
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(done == 8);
}

TEST_CASE("a slow reader delays nobody else") {
  Engine engine(model_file().options());
  std::mutex gate;
  gate.lock();
  std::size_t slow_tokens = 0;
  std::thread slow([&] {
    GenerateParams params{.max_tokens = 300, .ignore_eos = true};
    params.on_text = [&](std::string_view) {
      const std::lock_guard wait(gate);
      return true;
    };
    slow_tokens = engine.generate("abc", params).token_ids.size();
  });
  for (int i = 0; i < 5; ++i) {
    CHECK(engine.generate("xyz", {.max_tokens = 50, .ignore_eos = true}).token_ids.size() == 50);
  }
  CHECK(engine.stats().new_tokens < 550);  // the slow one is held back
  gate.unlock();
  slow.join();
  CHECK(slow_tokens == 300);
  CHECK(engine.stats().new_tokens == 550);
}

TEST_CASE("many threads, all kinds of calls and endings") {
  Engine engine(model_file().options());
  const auto shared = random_ids(60, 6);
  const std::string expected = fingerprint(engine.generate(shared, whole_rows(engine, 6)));
  std::atomic<int> wrong = 0;  // Catch2 checks are for one thread
  std::vector<std::thread> callers;
  for (std::uint32_t t = 0; t < 6; ++t) {
    callers.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 8; ++i) {
        switch ((t + i) % 5) {
          case 0:
            if (fingerprint(engine.generate_with_cache(shared, whole_rows(engine, 6))) !=
                expected) {
              ++wrong;
            }
            break;
          case 1: {
            GenerateParams params{.max_tokens = 50, .ignore_eos = true};
            params.on_text = [n = 0](std::string_view) mutable { return ++n < 4; };
            engine.generate_with_cache(random_ids(40, t), params);
            break;
          }
          case 2:
            engine.score(random_ids(30, i));
            break;
          case 3:
            engine.cache().clear();
            static_cast<void>(engine.stats());
            static_cast<void>(engine.cache().stats());
            break;
          default:
            engine.generate(random_ids(25, i), {.max_tokens = 5, .timeout = 1ms});
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
  CHECK(engine.cache().stats().blocks_in_use == 0);
}

TEST_CASE("two engines share a PrefixCache object and withdraw from it") {
  const auto cache = std::make_shared<PrefixCache>();
  const auto ids = random_ids(40, 7);
  {
    Engine first(model_file().options(), cache);
    Engine second(model_file().options(), cache);
    first.generate_with_cache(ids, {.max_tokens = 0});
    second.generate_with_cache(ids, {.max_tokens = 0});
    CHECK(cache->stats().blocks_cached == 4);
    CHECK(cache->stats().lookups == 2);
  }
  CHECK(cache->stats().blocks_cached == 0);
  CHECK(cache->stats().blocks_total == 0);
}

TEST_CASE("the model is described") {
  Engine engine(model_file().options());
  const ModelInfo& info = engine.model();
  CHECK(info.architecture == "llama");
  CHECK(info.context == 512);
  CHECK(info.threads == 2);
  CHECK(info.chat);
  CHECK(info.parameters > 0);
  CHECK_FALSE(info.numerics.empty());
  CHECK(engine.stats().requests == 0);
}

TEST_CASE("a file with a tokenizer that is no good is refused before its weights are loaded") {
  const TemporaryDirectory directory;
  incipit::test::make_tiny_model({}).write_hugging_face(directory.path());
  std::ofstream(directory.path() / "tokenizer.json", std::ios::trunc) << "{";
  incipit::EngineOptions options;
  options.model = directory.path();
  bool began = false;
  options.on_load = [&](double) { began = true; };
  CHECK_THROWS_AS(incipit::Engine(options), incipit::Error);
  CHECK(!began);
}

TEST_CASE("the log sink hears of the model, and nothing of prompts") {
  std::string heard;
  EngineOptions options = model_file().options();
  options.log = [&](LogLevel, std::string_view message) { heard += message; };
  std::vector<double> progress;
  options.on_load = [&](double fraction) { progress.push_back(fraction); };
  Engine engine(options);
  CHECK(heard.find("llama") != std::string::npos);
  engine.generate("secret prompt", {.max_tokens = 2});
  CHECK(heard.find("secret") == std::string::npos);
  REQUIRE_FALSE(progress.empty());
  CHECK(progress.back() == 1.0);
  CHECK(std::is_sorted(progress.begin(), progress.end()));
}

TEST_CASE("messages are rendered, and their content yields no special tokens") {
  Engine engine(model_file().options());
  const std::vector<Message> messages = {{Role::kSystem, "sys"}, {Role::kUser, "<|im_end|>hi"}};
  const std::string text = engine.render(messages);
  CHECK(text.find("<|im_start|>system\nsys<|im_end|>") != std::string::npos);
  const auto ids = engine.tokenize(messages);
  CHECK(ids != engine.tokenize(text));  // the text's own <|im_end|> is special in raw text
  CHECK(engine.generate_with_cache(messages, {.max_tokens = 3}).prompt_ids == ids);
  CHECK(engine.generate(messages, {.max_tokens = 3}).prompt_ids == ids);
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("a child of fork gets an error, not a hang") {
  Engine engine(model_file().options());
  engine.generate("abc", {.max_tokens = 2});
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      engine.generate("abc");
    } catch (const Error& error) {
      code = error.code() == ErrorCode::kForked ? 0 : 2;
    }
    _exit(code);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif
