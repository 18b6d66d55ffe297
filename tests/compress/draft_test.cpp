// SPDX-License-Identifier: Apache-2.0
#include "compress/draft.h"

#include <string>
#include <vector>

#include "compress/history_chat.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace compress;

TEST_CASE("a draft counts what it holds, and what stands around it") {
  HistoryChat chat(plain_options(CompressionPolicy::kWindow, 1000));
  CHECK(chat.draft().tokens() == chat.counter.prompt);
  CHECK(chat.draft().items().empty());
  chat.add(Role::kSystem, "Be brief.");
  chat.add(Role::kUser, "Hello");
  const Draft draft = chat.draft();
  CHECK(draft.tokens() == chat.counter.prompt + chat.view[0].tokens + chat.view[1].tokens);
  CHECK(draft.items().size() == 2);
  CHECK(draft.durable_items() == 2);
}

TEST_CASE("a segment takes the place of messages, fixed ones aside") {
  HistoryChat chat(plain_options(CompressionPolicy::kFrozenSegments, 1000));
  Message pinned;
  pinned.text = "My name is Ada.";
  pinned.pinned = true;
  chat.add(Role::kUser, "The lamp is red. It was green. It is old.");
  chat.add(pinned);
  chat.add(Role::kAssistant, "Noted.");
  chat.add(Role::kUser, "Go on.");
  Draft draft = chat.draft();
  const std::size_t loose = chat.view[0].tokens + chat.view[2].tokens;
  CHECK(draft.loose_tokens(0, 3) == loose);
  CHECK(draft.loose_tokens(0, 0) == 0);
  CHECK(draft.first_live(0) == 0);
  draft.replace(0, 3, loose);
  REQUIRE(draft.segments.size() == 1);
  CHECK(draft.segments == draft.made);
  CHECK(draft.segments[0]->fixed == std::vector<std::uint32_t>{1});
  CHECK(draft.segments[0]->tokens <= loose);
  CHECK(draft.first_live(0) == 3);
  CHECK(draft.first_live(2) == 3);
  CHECK(draft.is_covered(1));
  CHECK_FALSE(draft.is_covered(3));
  CHECK(draft.loose_tokens(0, 3) == draft.segment_tokens());
  const std::vector<Item> items = draft.items();
  REQUIRE(items.size() == 3);
  CHECK(items[0].message->text == pinned.text);
  CHECK(items[1].message == &draft.segments[0]->message);
  CHECK(items[2].message->text == "Go on.");
  CHECK(draft.tokens() ==
        chat.counter.prompt + items[0].tokens + items[1].tokens + items[2].tokens);
}

TEST_CASE("marked orders all stay, found ones in a quarter of the segment, the newest first") {
  HistoryChat chat(plain_options(CompressionPolicy::kFrozenSegments, 1000));
  const auto number = [](std::size_t i) { return std::to_string(10 + i); };
  for (std::size_t i = 0; i < 40; ++i) {
    Message message;
    message.constraint = i % 10 == 0;
    message.text = (message.constraint ? "Mind rule " : "Never break rule ") + number(i) + ".";
    chat.add(message);
    chat.add(Role::kAssistant, "Very well.");
  }
  chat.add(Role::kUser, "Go on.");
  Draft draft = chat.draft();
  constexpr std::size_t kRoom = 120;
  draft.replace(0, 80, kRoom);
  std::size_t marked = 0, found = 0, found_tokens = 0;
  for (const Quote& quote : draft.segments[0]->quotes) {
    if (!quote.order) continue;
    if (quote.text.starts_with("Mind")) {
      ++marked;
      continue;
    }
    ++found;
    found_tokens += quote.tokens;
  }
  CHECK(marked == 4);
  CHECK(found >= 4);
  CHECK(found_tokens <= kRoom / 4);
  // From the newest on, without a gap.
  const std::string& text = draft.segments[0]->message.text;
  const std::size_t orders = text.find("Still in force:");
  for (std::size_t i = 40, kept = 0; kept < found && i-- > 0;) {
    if (i % 10 == 0) continue;
    CHECK(text.find("Never break rule " + number(i), orders) != std::string::npos);
    ++kept;
  }
}

TEST_CASE("what is said twice is quoted once, and the order wins") {
  HistoryChat chat(plain_options(CompressionPolicy::kFrozenSegments, 1000));
  const std::string order = "Never push to the main branch.";
  chat.add(Role::kUser, "Well?");
  chat.add(Role::kAssistant, order + " Ask me first of all.");
  chat.add(Role::kUser, order);
  chat.add(Role::kAssistant, "Ask me first of all.");
  chat.add(Role::kUser, "Go on.");
  Draft draft = chat.draft();
  draft.replace(0, 4, 500);
  std::size_t orders = 0, asked = 0;
  for (const Quote& quote : draft.segments[0]->quotes) {
    if (quote.text.starts_with("Never")) {
      ++orders;
      CHECK(quote.order);
      CHECK(quote.entry == 2);
    }
    asked += quote.text.starts_with("Ask") ? 1u : 0u;
  }
  CHECK(orders == 1);
  CHECK(asked == 1);
}

TEST_CASE("what must not be compressed is quoted whole, or not at all") {
  HistoryChat chat(plain_options(CompressionPolicy::kFrozenSegments, 1000));
  Message whole;
  whole.text = "The lamp of Ada is red. The door is green. The roof is blue and old.";
  whole.no_compress = true;
  chat.add(whole);
  chat.add(Role::kAssistant, "It was noted on 5 May. And so was the door. And the roof.");
  chat.add(Role::kUser, "Go on.");
  bool kept = false, dropped = false;
  for (std::size_t room = 20; room < 80; ++room) {
    Draft draft = chat.draft();
    draft.replace(0, 2, room);
    bool holds = false;
    for (const Quote& quote : draft.segments[0]->quotes) {
      if (quote.entry != 0) continue;
      CHECK(quote.text == whole.text);
      holds = true;
    }
    (holds ? kept : dropped) = true;
  }
  CHECK(kept);
  CHECK(dropped);
}

TEST_CASE("orders stand behind a Summarizer's text, which must be shorter than what it tells") {
  CompressorOptions options = plain_options(CompressionPolicy::kFrozenSegments, 1000);
  std::string summary = "They spoke of lamps.";
  options.summarizer = [&summary](const SummaryRequest&) { return summary; };
  HistoryChat chat(options);
  Message marked;
  marked.text = "Mind the gap.";
  marked.constraint = true;
  chat.add(marked);
  chat.add(Role::kAssistant, "The lamp is red, I would say, and the other one is green.");
  chat.add(Role::kUser, "Never shout. The lamps are nice, and so are all the others that we saw.");
  chat.add(Role::kAssistant, "We saw very many of them, and each was nicer than the one before.");
  chat.add(Role::kUser, "Go on.");
  Draft draft = chat.draft();
  draft.replace(0, 4, 500);
  const Segment& told = *draft.segments[0];
  CHECK(told.summary == summary);
  CHECK(told.message.text.find("- Mind the gap.") != std::string::npos);
  CHECK(told.message.text.find("- Never shout.") != std::string::npos);
  // As long as what it stands for, though there is room.
  summary = std::string(4 * (chat.draft().loose_tokens(0, 4) + 20), 'x');
  Draft refused = chat.draft();
  refused.replace(0, 4, 500);
  CHECK(refused.segments[0]->summary.empty());
  CHECK(refused.segments[0]->message.text.find("- Never shout.") != std::string::npos);
}

TEST_CASE("with a Summarizer, too, found orders take a quarter of the segment at most") {
  CompressorOptions options = plain_options(CompressionPolicy::kFrozenSegments, 1000);
  options.summarizer = [](const SummaryRequest&) { return std::string("They spoke of lamps."); };
  HistoryChat chat(options);
  for (int i = 0; i < 30; ++i) {
    chat.add(Role::kUser, "Never shout at number " + std::to_string(i * 7919) + ".");
    chat.add(Role::kAssistant, "I shall not, whatever else I may do to those numbers of yours.");
  }
  chat.add(Role::kUser, "Go on.");
  Draft draft = chat.draft();
  draft.replace(0, 60, 200);
  const std::string& told = draft.segments[0]->message.text;
  std::size_t orders = 0;
  for (std::size_t at = 0; (at = told.find("Never shout", at)) != std::string::npos; ++at) ++orders;
  CHECK(orders > 0);
  CHECK(orders < 10);
  CHECK(draft.segments[0]->tokens <= 200);
}

}  // namespace
}  // namespace incipit::test
