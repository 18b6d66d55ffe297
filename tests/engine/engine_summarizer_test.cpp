// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "engine/tiny_engine.h"
#include "incipit/engine.h"
#include "support/catch.h"

using namespace incipit;
using namespace incipit::test;

namespace {

std::vector<Message> some_chat(std::size_t messages) {
  std::vector<Message> chat = {{Role::kSystem, "Be brief."}};
  for (std::size_t i = 0; i < messages; ++i) {
    std::string text = "message number ";
    text += std::to_string(i);
    chat.push_back({i % 2 == 0 ? Role::kUser : Role::kAssistant, text});
  }
  return chat;
}

}  // namespace

TEST_CASE("a summary's prompt is the last one, which is in the cache, and an order") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::vector<Message> prompt = some_chat(11);
  engine.generate_with_cache(prompt, {.max_tokens = 1});
  const std::size_t sent = engine.tokenize(prompt).size();
  const EngineStats before = engine.stats();
  const Summarizer summarizer = engine_summarizer(engine);
  const std::span<const Message> segment = std::span(prompt).subspan(1, 4);
  const std::string summary = summarizer({prompt, segment, 12});
  const EngineStats after = engine.stats();
  CHECK(after.requests == before.requests + 1);
  CHECK(after.new_tokens - before.new_tokens <= 12);
  // All but the opening of the assistant's turn, which is the user's now, and its last block.
  CHECK(after.reused_tokens - before.reused_tokens + 32 >= sent);
  CHECK(summarizer({prompt, segment, 12}) == summary);
}

TEST_CASE("what was never sent is summarised from the segment alone") {
  const TinyModelFile file;
  Engine engine(file.options());
  const std::vector<Message> segment = some_chat(5);
  const Summarizer summarizer = engine_summarizer(engine);
  summarizer({{}, segment, 8});
  CHECK(engine.stats().prompt_tokens < engine.tokenize(segment).size() + 200);
  CHECK(engine.stats().prompt_tokens > engine.tokenize(segment).size());
  CHECK(summarizer({segment, {}, 8}).empty());
}

TEST_CASE("a prompt that is too long for a summary is an Error") {
  const TinyModelFile file;
  EngineOptions options = file.options();
  options.max_context = 64;
  Engine engine(options);
  const std::vector<Message> segment = some_chat(20);
  CHECK_THROWS_AS(engine_summarizer(engine)({{}, segment, 8}), Error);
}
