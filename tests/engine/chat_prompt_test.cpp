// SPDX-License-Identifier: Apache-2.0
#include "engine/chat_prompt.h"

#include <stdexcept>

#include "engine/host_chat_format.h"
#include "engine/tiny_engine.h"
#include "support/catch.h"
#include "text/fixture.h"

namespace incipit::engine {
namespace {

// Shows of each message its role's first letter and its text; earlier answers in short.
std::vector<PromptPiece> render_short(std::span<const Message> conversation, const ChatOptions&) {
  std::vector<PromptPiece> pieces = {{"<|im_start|>", true}};
  for (std::size_t i = 0; i < conversation.size(); ++i) {
    const Message& message = conversation[i];
    const bool is_old_answer = message.role == Role::kAssistant && i + 2 < conversation.size();
    pieces.push_back({message.role == Role::kUser ? "u:" : "a:", true});
    pieces.push_back({is_old_answer ? message.text.substr(0, 3) : message.text, false});
    pieces.push_back({"<|im_end|>", true});
  }
  pieces.push_back({"a:", true});
  return pieces;
}

struct Fixture {
  text::Tokenizer tokenizer{test::make_tiny_model().tokenizer};
  HostChatFormat format{render_short};
  std::vector<TokenId> encode(const std::string& text) const { return tokenizer.encode(text); }
};

// What each byte would be as a token of its own: other ids than the tokenizer gives.
std::vector<TokenId> bytewise(const text::Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> ids;
  for (const char c : text) {
    const std::vector<TokenId> one = tokenizer.encode(std::string_view(&c, 1));
    ids.insert(ids.end(), one.begin(), one.end());
  }
  return ids;
}

TEST_CASE("a history keeps generated ids while its text stands, and no longer") {
  const Fixture fixture;
  ChatHistory history(fixture.format, fixture.tokenizer);
  CHECK(history.ids().empty());
  const Message q1{Role::kUser, "the first"}, q2{Role::kUser, "then"}, q3{Role::kUser, "last"};

  ChatHistory::Turn turn = history.next(std::span(&q1, 1), {});
  CHECK(turn.text == "<|im_start|>u:the first<|im_end|>a:");
  CHECK(turn.prompt.ids == fixture.encode(turn.text));
  CHECK(turn.prompt.rewritten_tokens == 0);
  const std::vector<TokenId> answer = bytewise(fixture.tokenizer, "the other");
  REQUIRE(answer != fixture.encode("the other"));
  const std::vector<TokenId> first_prompt = turn.prompt.ids;
  history.add(std::move(turn), "the other", answer);

  turn = history.next(std::span(&q2, 1), {});
  std::vector<TokenId> expected = first_prompt;
  expected.insert(expected.end(), answer.begin(), answer.end());
  const auto rest = fixture.encode("<|im_end|>u:then<|im_end|>a:");
  expected.insert(expected.end(), rest.begin(), rest.end());
  CHECK(turn.prompt.ids == expected);
  CHECK(turn.prompt.rewritten_tokens == 0);
  history.add(std::move(turn), "ok", fixture.encode("ok"));

  // Now the first answer is shortened to "the": everything behind it is new.
  turn = history.next(std::span(&q3, 1), {});
  std::vector<TokenId> cut = first_prompt;
  const auto tail = fixture.encode("the<|im_end|>a:");
  CHECK(turn.text ==
        "<|im_start|>u:the first<|im_end|>a:the<|im_end|>u:then<|im_end|>a:ok<|im_end|>u:last"
        "<|im_end|>a:");
  CHECK(std::equal(first_prompt.begin(), first_prompt.end(), turn.prompt.ids.begin()));
  CHECK(fixture.tokenizer.encode(turn.text) == turn.prompt.ids);
  const std::size_t common =
      static_cast<std::size_t>(std::mismatch(history.ids().begin(), history.ids().end(),
                                             turn.prompt.ids.begin(), turn.prompt.ids.end())
                                   .first -
                               history.ids().begin());
  CHECK(turn.prompt.rewritten_tokens == history.ids().size() - common);
  CHECK(turn.prompt.rewritten_tokens > 0);
}

TEST_CASE("a turn that is not added changes nothing") {
  const Fixture fixture;
  ChatHistory history(fixture.format, fixture.tokenizer);
  const Message question{Role::kUser, "q"};
  const auto once = history.next(std::span(&question, 1), {});
  const auto twice = history.next(std::span(&question, 1), {});
  CHECK(once.prompt.ids == twice.prompt.ids);
  CHECK(history.ids().empty());
}

TEST_CASE("a whole conversation tells what its template rewrote") {
  const Fixture fixture;
  const auto rewritten = [&](const std::vector<Message>& conversation) {
    const ChatPrompt prompt = make_chat_prompt(fixture.format, fixture.tokenizer, conversation, {});
    CHECK(prompt.ids == fixture.tokenizer.encode(fixture.format.render(conversation, {})));
    return prompt.rewritten_tokens;
  };
  const Message q{Role::kUser, "q"}, a{Role::kAssistant, "abcdef"};
  CHECK(rewritten({q}) == 0);
  CHECK(rewritten({q, a}) == 0);
  CHECK(rewritten({q, a, q}) == 0);
  // The answer before is shown whole until a second message follows.
  CHECK(rewritten({q, a, q, q}) > 0);
  CHECK(rewritten({a, q}) == 0);
}

// As LLaMA 2's format: spaces of its own around an answer.
std::vector<PromptPiece> render_spaced(std::span<const Message> conversation, const ChatOptions&) {
  std::vector<PromptPiece> pieces;
  for (const Message& message : conversation) {
    const bool asks = message.role == Role::kUser;
    pieces.push_back({asks ? "<s>" : " ", true});
    pieces.push_back({message.text, false});
    pieces.push_back({asks ? "=" : " </s>", true});
  }
  return pieces;
}

TEST_CASE("behind a place that stands, text is no beginning: no space is put in front again") {
  const text::Tokenizer tokenizer = text::tokenizer_of("llama2");
  const HostChatFormat format(render_spaced);
  for (const std::string answer : {" yes", " yes and no\n", ""}) {
    CAPTURE(answer);
    ChatHistory history(format, tokenizer);
    const Message question{Role::kUser, "so it is"};
    ChatHistory::Turn turn = history.next(std::span(&question, 1), {});
    const std::vector<text::TextPiece> said = {{answer, false}};
    text::Tokenizer::StablePrefix::End end = turn.end;
    const std::vector<TokenId> answer_ids = tokenizer.encode(said, end);
    // The template has a space in front and one behind; the engine's text has the one in front.
    history.add(std::move(turn), answer, answer_ids);
    turn = history.next(std::span(&question, 1), {});
    CHECK(turn.prompt.ids == tokenizer.encode(format.render(turn.messages, {})));
  }
}

TEST_CASE("a format that refuses the front of a conversation does not fail the whole") {
  const Fixture fixture;
  const HostChatFormat picky([](std::span<const Message> conversation, const ChatOptions& options) {
    if (conversation.back().role != Role::kUser) throw std::runtime_error("no question");
    return render_short(conversation, options);
  });
  const std::vector<Message> conversation = {
      {Role::kSystem, "s"}, {Role::kAssistant, "hello"}, {Role::kUser, "hi"}};
  const ChatPrompt prompt = make_chat_prompt(picky, fixture.tokenizer, conversation, {});
  CHECK(prompt.ids == fixture.tokenizer.encode(picky.render(conversation, {})));
  CHECK(prompt.rewritten_tokens == 0);
}

}  // namespace
}  // namespace incipit::engine
