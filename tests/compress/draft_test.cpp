// SPDX-License-Identifier: Apache-2.0
#include "compress/draft.h"

#include <string>
#include <utility>
#include <vector>

#include "compress/conversations.h"
#include "compress/policies.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace compress;

struct Chat {
  explicit Chat(CompressorOptions some, TokenCounter count = byte_counter())
      : options(std::move(some)), counter(std::move(count)) {}

  void add(Role role, std::string text) {
    Message message{.role = role};
    message.text = std::move(text);
    history.add(history.arriving(
        message, 0, [](std::size_t) { return true; }, [](std::size_t) { return false; }));
  }
  Draft draft() const { return Draft(view, {options, counter}, {}); }

  const CompressorOptions options;
  const TokenCounter counter;
  History history{options, counter};
  View view{history};
};

CompressorOptions window(std::size_t budget) {
  CompressorOptions options;
  options.policy = CompressionPolicy::kWindow;
  options.token_budget = budget;
  options.compress_on_arrival = false;
  return options;
}

TEST_CASE("a draft counts what it holds, and what stands around it") {
  Chat chat(window(1000));
  CHECK(chat.draft().tokens() == chat.counter.prompt);
  CHECK(chat.draft().items().empty());
  chat.add(Role::kSystem, "Be brief.");
  chat.add(Role::kUser, "Hello");
  const Draft draft = chat.draft();
  CHECK(draft.tokens() == chat.counter.prompt + chat.view[0].tokens + chat.view[1].tokens);
  CHECK(draft.items().size() == 2);
  CHECK(draft.durable_items() == 2);
}

TEST_CASE("a budget is kept to the token, and one less is too little") {
  for (const auto policy :
       {CompressionPolicy::kNone, CompressionPolicy::kWindow,
        CompressionPolicy::kDedupSummaryTruncate, CompressionPolicy::kFrozenSegments}) {
    CompressorOptions options = window(0);
    options.policy = policy;
    for (const std::size_t size : {0u, 1u, 15u, 16u, 17u}) {
      Message system{.role = Role::kSystem}, user;
      system.text = std::string(size, 's');
      user.text = std::string(size, 'u');
      const std::vector<Message> input = {system, user};
      const TokenCounter counter = byte_counter();
      options.token_budget = counter.prompt + counter.message(system) + counter.message(user);
      CHECK(Compressor::compress(input, options, counter).tokens_after == options.token_budget);
      --options.token_budget;
      CHECK_THROWS_AS(Compressor::compress(input, options, counter), Error);
    }
  }
}

TEST_CASE("a window cuts a message to as much of its end as fits") {
  // Lines of which the parts count four times what the whole does.
  std::string text;
  for (std::size_t i = 0; i < 3000; ++i) text += static_cast<char>('a' + i % 26), text += '\n';
  std::size_t counted = 0;
  TokenCounter counter = byte_counter();
  counter.message = [&counted, count = counter.message](const Message& message) {
    counted += message.text.size();
    return count(message);
  };
  for (const std::size_t budget : {100u, 101u, 500u, 1400u}) {
    Chat chat(window(budget), counter);
    chat.add(Role::kAssistant, text);
    chat.add(Role::kUser, "And now?");
    counted = 0;
    Draft draft = chat.draft();
    make_it_fit(draft);
    CAPTURE(budget);
    REQUIRE(draft.cuts.size() == 1);
    CHECK(draft.tokens() == budget);
    CHECK(text.ends_with(draft.cuts.front().message.text));
    CHECK(counted < 20 * text.size());  // not once per line
  }
}

TEST_CASE("no more is cut than must be, and cuts stand by entry") {
  Chat chat(window(300));
  Message call{.role = Role::kAssistant};
  for (std::size_t i = 0; i < 3; ++i) call.tool_calls.push_back({std::to_string(i), "f", "{}"});
  const auto add = [&](const Message& message) {
    chat.history.add(chat.history.arriving(
        message, 0, [](std::size_t) { return true; }, [](std::size_t) { return false; }));
  };
  chat.add(Role::kUser, "Read.");
  add(call);
  for (std::size_t i = 0; i < 3; ++i) {
    Message result{.role = Role::kTool};
    result.tool_call_id = std::to_string(i);
    for (std::size_t line = 0; line < 40 + 10 * i; ++line) {
      result.text += "line " + std::to_string(line) + "\n";
    }
    add(result);
  }
  Draft draft = chat.draft();
  make_it_fit(draft);
  CHECK(draft.tokens() <= 300);
  REQUIRE(draft.cuts.size() == 1);  // the longest one is enough
  CHECK(draft.cuts.front().entry == 4);
  CompressorOptions small = window(200);
  Draft both(chat.view, {small, chat.counter}, {});
  make_it_fit(both);
  REQUIRE(both.cuts.size() >= 2);
  for (std::size_t i = 1; i < both.cuts.size(); ++i) {
    CHECK(both.cuts[i - 1].entry < both.cuts[i].entry);
  }
  const std::vector<Item> items = both.items();
  CHECK(items.size() == 5);
  for (const Cut& cut : both.cuts) CHECK(items[cut.entry].message == &cut.message);
}

TEST_CASE("a counter that counts nothing of some texts") {
  TokenCounter counter = byte_counter();
  counter.text = [](std::string_view) -> std::size_t { return 0; };
  std::vector<Quote> quotes(50);
  for (std::size_t i = 0; i < quotes.size(); ++i) quotes[i].text = "No " + std::to_string(i) + ". ";
  for (const std::size_t room : {0u, 1u, 5u, 13u, 14u, 15u, 16u, 17u, 60u}) {
    const Fitted fitted = fit_quotes(kSegmentHeading, {}, quotes, room, counter);
    CAPTURE(room);
    CHECK(fitted.tokens <= room);
  }
}

}  // namespace
}  // namespace incipit::test
