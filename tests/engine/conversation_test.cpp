// SPDX-License-Identifier: Apache-2.0
#include "incipit/conversation.h"

#include "engine/tiny_engine.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

TEST_CASE("each turn reuses everything before it, generated ids included") {
  const TinyModelFile file;
  Engine engine(file.options());
  Conversation chat(engine, "Be brief.");
  CHECK(chat.token_ids().empty());
  std::size_t before = 0;
  for (std::uint64_t turn = 0; turn < 4; ++turn) {
    GenerateParams params{.max_tokens = 20, .temperature = 1.0f, .seed = turn};
    const auto result = chat.send("Turn number " + std::to_string(turn), params);
    // All but the last token of the turn before has its KV, in whole blocks.
    if (turn > 0) CHECK(result.reused_tokens >= (before - 1) / 16 * 16);
    before = chat.token_ids().size();
    CHECK(before == result.prompt_ids.size() + result.token_ids.size());
    CHECK(std::equal(result.prompt_ids.begin(), result.prompt_ids.end(), chat.token_ids().begin()));
    CHECK(fingerprint(engine.generate(result.prompt_ids, params)) == fingerprint(result));
  }
}

TEST_CASE("a first turn is the rendered conversation") {
  const TinyModelFile file;
  Engine engine(file.options());
  Conversation chat(engine, "Be brief.");
  const auto result = chat.send("Hi!", {.max_tokens = 2});
  const std::vector<Message> messages = {{Role::kSystem, "Be brief."}, {Role::kUser, "Hi!"}};
  CHECK(result.prompt_ids == engine.tokenize(messages));
}

TEST_CASE("a turn that fails leaves the conversation as it was") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.max_context = 100;
  Engine engine(options);
  Conversation chat(engine);
  chat.send("a", {.max_tokens = 2});
  const std::vector<TokenId> before(chat.token_ids().begin(), chat.token_ids().end());
  CHECK_THROWS_AS(chat.send(std::string(500, 'x')), Error);
  CHECK(std::equal(before.begin(), before.end(), chat.token_ids().begin(), chat.token_ids().end()));
  CHECK_NOTHROW(chat.send("b", {.max_tokens = 2}));
}
