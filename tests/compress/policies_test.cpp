// SPDX-License-Identifier: Apache-2.0
#include "compress/policies.h"

#include <string>
#include <vector>

#include "compress/history_chat.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace compress;

CompressorOptions window(std::size_t budget) {
  return plain_options(CompressionPolicy::kWindow, budget);
}

std::string numbered(std::string_view front, std::size_t number) {
  return std::string(front) + std::to_string(number);
}

// Turns of 2 x (4 + 10) tokens.
void add_turns(HistoryChat& chat, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    for (const Role role : {Role::kUser, Role::kAssistant}) {
      std::string text = numbered("Turn ", i);
      text.resize(39, '.');
      chat.add(role, text + " ");
    }
  }
}

TEST_CASE("a share of tokens, at its ends too") {
  CHECK(share(0, 100) == 0);
  CHECK(share(0.5, 101) == 50);
  CHECK(share(1, SIZE_MAX) == SIZE_MAX);
  CHECK(share(0.25, 0) == 0);
}

TEST_CASE("a unit is open until all its results are there") {
  HistoryChat chat(window(1000));
  CHECK(open_unit(chat.view) == 0);
  chat.add(Role::kUser, "Read both.");
  CHECK(open_unit(chat.view) == 1);
  Message call{.role = Role::kAssistant};
  call.tool_calls = {{"a", "read", "{}"}, {"b", "read", "{}"}};
  chat.add(call);
  CHECK(open_unit(chat.view) == 1);
  for (const char* id : {"a", "b"}) {
    Message result{.role = Role::kTool};
    result.tool_call_id = id;
    chat.add(result);
    CHECK(open_unit(chat.view) == (*id == 'a' ? 1 : 4));
  }
}

TEST_CASE("a window keeps the system message and the newest turns, and no order is lost") {
  HistoryChat chat(window(200));
  chat.add(Role::kSystem, "Be brief.");
  Message order;
  order.text = "Never shout.";
  order.constraint = true;
  chat.add(order);
  add_turns(chat, 20);
  chat.add(Role::kUser, "Go on.");
  Draft draft = chat.draft();
  make_it_fit(draft);
  const std::vector<Item> items = draft.items();
  REQUIRE(items.size() > 4);
  CHECK(items[0].message->text == "Be brief.");
  CHECK(items[1].message->text == "Never shout.");
  CHECK(items.back().message->text == "Go on.");
  for (std::size_t i = 3; i < items.size(); ++i) {
    CHECK(items[i].message == &chat.view[chat.view.size() - items.size() + i].shown());
  }
  CHECK(draft.tokens() <= 200);
  CHECK(draft.tokens() + 14 > 200);
}

TEST_CASE("a summary is made above the watermark only, and not of the last turns") {
  const auto policy = CompressionPolicy::kDedupSummaryTruncate;
  CompressorOptions options = plain_options(policy, 500);
  HistoryChat chat(options);
  add_turns(chat, 14);  // 392 of 400 tokens, and 3 of the prompt
  Draft below = chat.draft();
  make_it_fit(below);
  CHECK(below.made.empty());
  CHECK(below.items().size() == 28);
  chat.add(Role::kUser, "Go on with it.");
  Draft above = chat.draft();
  make_it_fit(above);
  REQUIRE(above.segments.size() == 1);
  CHECK(above.tokens() <= 400);
  CHECK(above.segments[0]->first == 0);
  CHECK(above.segments[0]->end == 24);  // the user's three last messages begin the last turns
  CHECK(above.items().size() == 6);
}

TEST_CASE("a summary leaves room for turns to come") {
  CompressorOptions options = plain_options(CompressionPolicy::kDedupSummaryTruncate, 1000);
  Compressor compressor(options, byte_counter());
  std::size_t summaries = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    for (const Role role : {Role::kUser, Role::kAssistant}) {
      Message message{.role = role};
      message.text = numbered("Turn ", i * 7919 + (role == Role::kUser ? 0 : 1));
      compressor.add(message);
      if (role == Role::kUser) summaries += compressor.apply().compacted ? 1u : 0u;
    }
  }
  CHECK(summaries >= 4);
  CHECK(summaries < 40);  // not one on every turn
}

TEST_CASE("a log of fewer recent turns leaves its segments whole") {
  CompressorOptions options = plain_options(CompressionPolicy::kDedupSummaryTruncate, 500);
  options.recent_turns_kept = 1;
  Compressor compressor(options, byte_counter());
  const auto say = [](Compressor& to, std::size_t i) {
    for (const Role role : {Role::kUser, Role::kAssistant}) {
      Message message{.role = role};
      message.text = numbered("Turn ", i * 7919) + std::string(30, role == Role::kUser ? 'u' : 'a');
      to.add(message);
    }
  };
  std::size_t turns = 0;
  while (!compressor.plan().compacted) say(compressor, turns++);
  compressor.apply();
  options.recent_turns_kept = 3;
  Compressor other = Compressor::deserialize(compressor.serialize(), options, byte_counter());
  for (std::size_t i = 0; i < 30; ++i) {
    say(other, turns++);
    CHECK(other.apply().tokens_after <= 500);
  }
  CHECK(Compressor::deserialize(other.serialize(), options, byte_counter()).size() == other.size());
}

TEST_CASE("an infeasible budget is told with what takes the room") {
  HistoryChat chat(plain_options(CompressionPolicy::kFrozenSegments, 30));
  chat.add(Role::kSystem, std::string(40, 's'));
  chat.add(Role::kUser, std::string(80, 'u'));
  Draft draft = chat.draft();
  try {
    make_it_fit(draft);
    FAIL("it fits");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kBudgetInfeasible);
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(what.find("takes 41 tokens of a budget of 30") != std::string::npos);
    CHECK(what.find("system and pinned messages 14,") != std::string::npos);
    CHECK(what.find("the last user turn 24,") != std::string::npos);
  }
}

TEST_CASE("a budget is kept to the token, and one less is too little") {
  for (const auto policy :
       {CompressionPolicy::kNone, CompressionPolicy::kWindow,
        CompressionPolicy::kDedupSummaryTruncate, CompressionPolicy::kFrozenSegments}) {
    CompressorOptions options = plain_options(policy, 0);
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
    HistoryChat chat(window(budget), counter);
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
  HistoryChat chat(window(300));
  Message call{.role = Role::kAssistant};
  for (std::size_t i = 0; i < 3; ++i) call.tool_calls.push_back({std::to_string(i), "f", "{}"});
  chat.add(Role::kUser, "Read.");
  chat.add(call);
  for (std::size_t i = 0; i < 3; ++i) {
    Message result{.role = Role::kTool};
    result.tool_call_id = std::to_string(i);
    for (std::size_t line = 0; line < 40 + 10 * i; ++line) {
      result.text += "line " + std::to_string(line) + "\n";
    }
    chat.add(result);
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

}  // namespace
}  // namespace incipit::test
