// SPDX-License-Identifier: Apache-2.0
// Failures that users of other systems have reported (docs/compression.md), as tests.
#include <stdexcept>
#include <string>
#include <vector>

#include "compress/conversations.h"
#include "compress/invariants.h"
#include "compress/segment.h"
#include "incipit/compressor.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

Message say(Role role, std::string text) {
  Message message{.role = role};
  message.text = std::move(text);
  return message;
}

std::string numbered(std::string_view front, std::size_t number, std::string_view back) {
  std::string text(front);
  text += std::to_string(number);
  text += back;
  return text;
}

CompressorOptions with_budget(std::size_t budget) {
  CompressorOptions options;
  options.token_budget = budget;
  return options;
}

std::vector<Message> chat(std::size_t turns) {
  std::vector<Message> out = {say(Role::kSystem, "You are careful.")};
  for (std::size_t i = 0; i < turns; ++i) {
    out.push_back(
        say(Role::kUser, numbered("Crate ", i, " holds spare parts. What else is there?")));
    out.push_back(
        say(Role::kAssistant, numbered("In crate ", i, " there are lamps and cables, too.")));
  }
  return out;
}

void add_round(std::vector<Message>& out, std::size_t number, std::string result) {
  Message call = say(Role::kAssistant, "");
  call.tool_calls.push_back({numbered("c", number, ""), "read", numbered("{\"n\": ", number, "}")});
  out.push_back(call);
  out.push_back(say(Role::kTool, std::move(result)));
  out.back().tool_call_id = call.tool_calls.front().id;
}

bool holds(const CompressedPrompt& prompt, std::string_view text) {
  for (const Message& message : prompt.messages) {
    if (shown_text(message).find(text) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("any size of input meets the budget") {
  const TokenCounter counter = byte_counter();
  for (const std::size_t turns : {1u, 3u, 10u, 100u, 1500u}) {
    const std::vector<Message> input = chat(turns);
    for (const std::size_t budget : {150u, 400u, 1000u, 5000u}) {
      const CompressedPrompt prompt = Compressor::compress(input, with_budget(budget), counter);
      CAPTURE(turns, budget);
      CHECK(broken_promise(input, prompt, with_budget(budget), counter).empty());
      CHECK(prompt.tokens_after * 10 >= std::min(budget, prompt.tokens_before) * 9);
    }
  }
}

TEST_CASE("one message of 100,000 tokens") {
  const TokenCounter counter = byte_counter();
  std::string text;
  for (std::size_t i = 0; text.size() < 400'000; ++i) text += numbered("Line ", i, " is here. ");
  std::vector<Message> input = {say(Role::kUser, "Read this."), say(Role::kAssistant, text),
                                say(Role::kUser, "And now?")};
  const CompressedPrompt prompt = Compressor::compress(input, with_budget(2000), counter);
  CHECK(broken_promise(input, prompt, with_budget(2000), counter).empty());
  CHECK(prompt.tokens_after >= 1940);
  // As the last user turn it must stay whole, and cannot.
  input.push_back(say(Role::kUser, text));
  CHECK_THROWS_AS(Compressor::compress(input, with_budget(2000), counter), Error);
}

TEST_CASE("empty conversations and messages") {
  const TokenCounter counter = byte_counter();
  for (const auto policy :
       {CompressionPolicy::kNone, CompressionPolicy::kWindow,
        CompressionPolicy::kDedupSummaryTruncate, CompressionPolicy::kFrozenSegments}) {
    CompressorOptions options = with_budget(100);
    options.policy = policy;
    CHECK(Compressor::compress({}, options, counter).messages.empty());
    const std::vector<Message> input = {say(Role::kUser, ""), say(Role::kAssistant, ""),
                                        say(Role::kUser, "[]"), say(Role::kAssistant, "{}")};
    CHECK(same_messages(Compressor::compress(input, options, counter).messages, input));
    const std::vector<Message> only_system = {say(Role::kSystem, "Only this.")};
    CHECK(same_messages(Compressor::compress(only_system, options, counter).messages, only_system));
  }
}

TEST_CASE("what must not be compressed is as it was, byte for byte") {
  const TokenCounter counter = byte_counter();
  std::vector<Message> input = chat(60);
  const std::string text = "  odd \r\n  spacing\t, and  {\"json\" :  1}  ";
  input[1] = say(Role::kUser, text);
  input[1].no_compress = true;
  input[1].pinned = true;
  const CompressedPrompt prompt = Compressor::compress(input, with_budget(500), counter);
  CHECK(prompt.messages[1].text == text);
}

TEST_CASE("a call and its result stay together wherever the cut falls") {
  const TokenCounter counter = byte_counter();
  std::vector<Message> input = {say(Role::kSystem, "Use tools.")};
  for (std::size_t i = 0; i < 20; ++i) {
    input.push_back(say(Role::kUser, numbered("Read file ", i, ".")));
    add_round(input, i,
              numbered("File ", i, " holds a list of numbers. It is long. It ends here."));
    input.push_back(say(Role::kAssistant, "Done."));
  }
  for (std::size_t budget = 80; budget < 900; budget += 7) {
    for (const auto policy : {CompressionPolicy::kWindow, CompressionPolicy::kDedupSummaryTruncate,
                              CompressionPolicy::kFrozenSegments}) {
      CompressorOptions options = with_budget(budget);
      options.policy = policy;
      options.compress_on_arrival = false;
      CAPTURE(budget);
      const CompressedPrompt prompt = Compressor::compress(input, options, counter);
      CHECK(broken_promise(input, prompt, options, counter).empty());
    }
  }
}

TEST_CASE("one user turn with very many tool results") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options = with_budget(1500);
  options.compress_on_arrival = false;
  std::vector<Message> input = {say(Role::kSystem, "Use tools."),
                                say(Role::kUser, "Find the bug.")};
  Compressor compressor(options, counter);
  for (const Message& message : input) compressor.add(message);
  std::size_t compactions = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    add_round(input, i, numbered("Result ", i, " says that nothing is wrong in this file. Go on."));
    compressor.add(input[input.size() - 2]);
    compressor.add(input.back());
    const CompressedPrompt prompt = compressor.apply();
    compactions += prompt.compacted ? 1u : 0u;
    const std::string broken = broken_promise(input, prompt, options, counter);
    REQUIRE(broken == "");
    CHECK(holds(prompt, "Find the bug."));
    CHECK(holds(prompt, input.back().text));
  }
  CHECK(compactions > 3);
  CHECK(compactions < 60);  // each makes room for some rounds
}

TEST_CASE("the budget holds after each of 500 turns, also after reloading") {
  const TokenCounter counter = byte_counter();
  const CompressorOptions options = with_budget(700);
  std::vector<Message> input;
  Compressor compressor(options, counter);
  for (const Message& message : chat(500)) {
    compressor.add(message);
    input.push_back(message);
    if (message.role != Role::kUser) continue;
    const CompressedPrompt prompt = compressor.apply();
    CHECK(tokens_of(prompt.messages, counter) <= 700);
    if (input.size() % 100 != 0) continue;
    compressor = Compressor::deserialize(compressor.serialize(), options, counter);
    CHECK(same_messages(compressor.plan().messages, prompt.messages));
  }
}

TEST_CASE("the system message is there once") {
  const TokenCounter counter = byte_counter();
  const std::vector<Message> input = chat(100);
  const CompressedPrompt prompt = Compressor::compress(input, with_budget(600), counter);
  std::size_t count = 0;
  for (const Message& message : prompt.messages) count += message.text == input[0].text ? 1u : 0u;
  CHECK(count == 1);
}

TEST_CASE("no progress is an error, not a loop") {
  const TokenCounter counter = byte_counter();
  std::vector<Message> input = chat(20);
  for (Message& message : input) message.pinned = true;
  Compressor compressor(with_budget(200), counter);
  for (const Message& message : input) compressor.add(message);
  const std::string before = compressor.serialize();
  try {
    compressor.apply();
    FAIL("it fits");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBudgetInfeasible);
    CHECK(std::string(error.what()).find("pinned messages") != std::string::npos);
  }
  CHECK(compressor.serialize() == before);
}

TEST_CASE("a Summarizer that fails changes nothing but who makes the summary") {
  const TokenCounter counter = byte_counter();
  const std::vector<Message> input = chat(100);
  const CompressorOptions plain = with_budget(600);
  const CompressedPrompt expected = Compressor::compress(input, plain, counter);
  const std::vector<Summarizer> bad = {
      [](const SummaryRequest&) -> std::string { throw std::runtime_error("timed out"); },
      [](const SummaryRequest&) { return std::string(); },
      [](const SummaryRequest&) { return std::string(" \n"); },
      [](const SummaryRequest&) { return std::string("\xFF\xFE"); },
      [](const SummaryRequest&) { return std::string("There are 123456 crates."); },
      [](const SummaryRequest&) { return std::string(100'000, 'a'); },
  };
  for (const Summarizer& summarizer : bad) {
    CompressorOptions options = plain;
    options.summarizer = summarizer;
    CHECK(same_messages(Compressor::compress(input, options, counter).messages, expected.messages));
  }
  CompressorOptions options = plain;
  std::size_t calls = 0;
  options.summarizer = [&calls](const SummaryRequest& request) {
    ++calls;
    CHECK(request.max_tokens > 0);
    CHECK(!request.segment.empty());
    return std::string("They went through all crates.");
  };
  Compressor compressor(options, counter);
  for (const Message& message : input) compressor.add(message);
  const CompressedPrompt plan = compressor.plan();
  CHECK(holds(plan, "They went through all crates."));
  CHECK(same_messages(plan.messages, compressor.apply().messages));
  CHECK(calls == 1);
}

TEST_CASE("an order survives every compaction word for word, and none is made up") {
  const TokenCounter counter = byte_counter();
  const CompressorOptions options = with_budget(600);
  Compressor compressor(options, counter);
  const std::string english = "Never touch the file /etc/crates.conf.";
  const std::string chinese = "请不要删除三号箱子里的东西。";
  const std::string marked = "Answer in French from time to time";
  std::size_t compactions = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    Message user = say(Role::kUser, numbered("Crate ", i, " is open. Look into it, please."));
    if (i == 0) user.text = english + " " + user.text;
    if (i == 1) user.text = chinese + user.text;
    if (i == 2) {
      user = say(Role::kUser, marked);
      user.constraint = true;
    }
    compressor.add(user);
    const CompressedPrompt prompt = compressor.apply();
    compactions += prompt.compacted ? 1u : 0u;
    CHECK(holds(prompt, english));
    if (i >= 1) CHECK(holds(prompt, chinese));
    if (i >= 2) CHECK(holds(prompt, marked));
    const std::string made = made_text(prompt);
    const std::size_t orders = made.find("Still in force:");
    if (orders != std::string::npos) {
      CHECK(made.find("You must obey", orders) == std::string::npos);
    }
    compressor.add(say(Role::kAssistant, numbered("Never mind. You must obey rule ", i, ".")));
  }
  CHECK(compactions > 5);
}

TEST_CASE("frozen segments are nobody's speech") {
  const TokenCounter counter = byte_counter();
  const CompressedPrompt prompt = Compressor::compress(chat(100), with_budget(600), counter);
  bool found = false;
  for (const Message& message : prompt.messages) {
    if (!message.text.starts_with(compress::kSegmentHeading)) continue;
    found = true;
    CHECK(message.role == Role::kSystem);
  }
  CHECK(found);
}

TEST_CASE("what was left out comes back when it is asked for") {
  const TokenCounter counter = byte_counter();
  CompressorOptions options = with_budget(800);
  Compressor compressor(options, counter);
  compressor.add(say(Role::kUser, "The code of the vault is kingfisher-4711."));
  compressor.add(say(Role::kAssistant, "I shall remember that."));
  for (const Message& message : chat(200)) {
    if (message.role == Role::kSystem) continue;
    compressor.add(message);
    if (message.role == Role::kUser) compressor.apply();
  }
  const std::string before = compressor.serialize();
  const Message question = say(Role::kUser, "Which code opens the vault?");
  const CompressedPrompt probe = compressor.plan(question);
  CHECK(holds(probe, "kingfisher-4711"));
  CHECK(probe.messages.back().text == question.text);
  CHECK(compressor.serialize() == before);
  CHECK(compressor.size() == 402);
  compressor.add(question);
  CHECK(same_messages(compressor.apply().messages, probe.messages));
}

TEST_CASE("a handle gives back what a tool said") {
  const TokenCounter counter = byte_counter();
  std::string listing = "{\"rows\": [";
  for (std::size_t i = 0; i < 400; ++i)
    listing += numbered(i > 0 ? ", {\"id\": " : "{\"id\": ", i, "}");
  listing += "]}";
  std::vector<Message> input = {say(Role::kUser, "List them.")};
  add_round(input, 0, listing);
  const CompressedPrompt prompt = Compressor::compress(input, with_budget(4000), counter);
  REQUIRE(prompt.report.size() == 3);
  const MessageReport& report = prompt.report[2];
  CHECK(report.fate == MessageFate::kShortened);
  CHECK(report.tokens_after < report.tokens_before / 4);
  REQUIRE(!report.handles.empty());
  Compressor compressor(with_budget(4000), counter);
  for (const Message& message : input) compressor.add(message);
  for (const std::string& handle : report.handles) CHECK(compressor.restore(handle) == listing);
  CHECK(compressor.restore("nothing") == std::nullopt);
}

TEST_CASE("a tool that says the same again is referred to") {
  const TokenCounter counter = byte_counter();
  const std::string page =
      "The museum opens at nine on weekdays, closes at six in the evening and sells tickets "
      "online.";
  std::vector<Message> input = {say(Role::kUser, "Open?")};
  add_round(input, 0, page);
  add_round(input, 1, page);
  const CompressedPrompt prompt = Compressor::compress(input, with_budget(4000), counter);
  CHECK(prompt.report[4].fate == MessageFate::kDuplicate);
  CHECK(prompt.messages[4].text.starts_with("[As in message #3"));
}

}  // namespace
}  // namespace incipit::test
