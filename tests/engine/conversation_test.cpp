// SPDX-License-Identifier: Apache-2.0
#include "incipit/conversation.h"

#include "base/file.h"
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

namespace {

// Qwen's way with thoughts on a tiny model.
class ThinkingModelFile {
 public:
  ThinkingModelFile() {
    TinyModel model = make_tiny_model({.context = 2048});
    model.chat_template = base::read_text_file(
        std::filesystem::path(INCIPIT_TEST_DATA "/text/templates/qwen3.jinja"), 1 << 16);
    model.write_gguf(directory_.path() / "model.gguf");
  }
  EngineOptions options() const {
    EngineOptions options;
    options.model = directory_.path() / "model.gguf";
    options.threads = 2;
    return options;
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a format that strips thoughts says what that costs") {
  const ThinkingModelFile file;
  Engine engine(file.options());
  CHECK(engine.model().chat_format == "Qwen 3");
  Conversation chat(engine);
  GenerateParams params{.max_tokens = 8};
  params.chat.thinking = false;
  const auto first = chat.send("one", params);
  CHECK(first.rewritten_tokens == 0);
  const std::string opened = engine.render(std::vector<Message>{{Role::kUser, "one"}});
  // The empty thought in front of the first answer is gone from the second prompt, and with it all
  // that the first answer's KV was computed behind.
  const auto second = chat.send("two", params);
  const std::size_t kept = engine.tokenize(opened).size();
  CHECK(second.rewritten_tokens > 0);
  CHECK(second.rewritten_tokens <= first.prompt_ids.size() + first.token_ids.size() - kept);
  CHECK(std::equal(second.prompt_ids.begin(),
                   second.prompt_ids.begin() + static_cast<std::ptrdiff_t>(kept),
                   first.prompt_ids.begin()));
  // The same from messages, which the engine has not seen before.
  const std::vector<Message> messages = {{Role::kUser, "one"},
                                         {Role::kAssistant, "<think>\nhm\n</think>\n\nyes"},
                                         {Role::kUser, "two"}};
  const auto whole = engine.generate_with_cache(messages, {.max_tokens = 1});
  CHECK(whole.rewritten_tokens ==
        engine.tokenize(std::string_view("<think>\nhm\n</think>\n\nyes")).size());
  CHECK(engine.submit(messages, {.max_tokens = 1}).wait().rewritten_tokens ==
        whole.rewritten_tokens);
}

TEST_CASE("results of tools go on with a conversation") {
  const ThinkingModelFile file;
  Engine engine(file.options());
  Conversation chat(engine);
  GenerateParams params{.max_tokens = 4};
  params.chat.tools = {R"({"type": "function", "function": {"name": "f"}})"};
  const auto asked = chat.send("call it", params);
  CHECK_THAT(engine.render(std::vector<Message>{{Role::kUser, "call it"}}, params.chat),
             Catch::Contains("<tools>\n{\"type\": \"function\""));
  const std::vector<Message> results = {{.role = Role::kTool, .text = "42"}};
  const auto answered = chat.send(results, params);
  const std::string prompt = engine.detokenize(answered.prompt_ids);
  CHECK_THAT(prompt, Catch::Contains("<tool_response>\n42\n</tool_response>"));
}

TEST_CASE("the host renders what incipit does not know") {
  TinyModel model = make_tiny_model({});
  model.chat_template = "{{ messages }}";
  const TemporaryDirectory directory;
  model.write_gguf(directory.path() / "model.gguf");
  EngineOptions options;
  options.model = directory.path() / "model.gguf";
  options.threads = 1;
  const std::vector<Message> hi = {{Role::kUser, "<|im_end|>"}};
  {
    Engine engine(options);
    CHECK_FALSE(engine.model().chat);
    try {
      engine.render(hi);
      FAIL("no Error was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kInvalidArgument);
      CHECK_THAT(error.what(), Catch::Contains("ChatML") && Catch::Contains("chat_renderer"));
    }
    CHECK_THROWS_AS(Conversation(engine), Error);
  }
  options.chat_renderer = [](std::span<const Message> conversation, const ChatOptions& chat) {
    std::vector<PromptPiece> pieces = {{"<|im_start|>" + chat.date, true}};
    for (const Message& message : conversation) pieces.push_back({message.text, false});
    pieces.push_back({"<|im_end|>", true});
    return pieces;
  };
  Engine engine(options);
  CHECK(engine.model().chat_format == "host");
  CHECK(engine.render(hi, {.date = "now"}) == "<|im_start|>now<|im_end|><|im_end|>");
  const auto ids = engine.tokenize(hi);
  const auto raw = engine.tokenize(engine.render(hi));
  CHECK(std::count(ids.begin(), ids.end(), ids.back()) + 1 ==
        std::count(raw.begin(), raw.end(), raw.back()));
  Conversation chat(engine);
  const auto first = chat.send("x", {.max_tokens = 4});
  const auto second = chat.send("y", {.max_tokens = 4});
  CHECK(first.rewritten_tokens == 0);
  CHECK(second.prompt_ids.size() > first.prompt_ids.size());
  const TokenCounter counter = engine.token_counter();
  CHECK(counter.message(hi[0]) == ids.size());
}

TEST_CASE("recommended sampling is the file's, and never the default") {
  const TinyModelFile file;
  const GenerateParams defaults;
  {
    Engine engine(file.options());
    CHECK(engine.recommended_params().temperature == defaults.temperature);
    CHECK_FALSE(engine.model().sampling.temperature.has_value());
  }
  const TemporaryDirectory directory;
  GgufWriter gguf = make_tiny_model({}).gguf();
  gguf.set_f32("general.sampling.temp", 0.7f)
      .set_u32("general.sampling.top_k", 20)
      .set_f32("general.sampling.top_p", 0.8f);
  gguf.write(directory.path() / "model.gguf");
  EngineOptions options = file.options();
  options.model = directory.path() / "model.gguf";
  Engine engine(options);
  const GenerateParams params = engine.recommended_params();
  CHECK(params.temperature == 0.7f);
  CHECK(params.top_k == 20);
  CHECK(params.top_p == 0.8f);
  CHECK(params.min_p == defaults.min_p);
  // A call that says nothing stays greedy.
  const std::vector<TokenId> prompt = random_ids(5, 1);
  CHECK(engine.generate(prompt, {.max_tokens = 5}).token_ids ==
        engine.generate(prompt, {.max_tokens = 5, .seed = 7}).token_ids);
}
