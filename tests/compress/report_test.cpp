// SPDX-License-Identifier: Apache-2.0
#include "compress/report.h"

#include <memory>
#include <string>
#include <vector>

#include "compress/history_chat.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace compress;

// System, pinned, an order, an ephemeral turn, and three turns of two messages: 0 to 10.
HistoryChat some_chat() {
  HistoryChat chat(plain_options(CompressionPolicy::kFrozenSegments, 1000));
  const auto add = [&](Role role, std::string text, bool Message::*flag = nullptr) {
    Message message{.role = role};
    message.text = std::move(text);
    if (flag != nullptr) message.*flag = true;
    chat.add(message);
  };
  add(Role::kSystem, "Be brief.");
  add(Role::kUser, "My name is Ada.", &Message::pinned);
  add(Role::kUser, "Never shout.", &Message::constraint);
  add(Role::kAssistant, "No.");
  add(Role::kUser, "Thanks!", &Message::ephemeral);
  add(Role::kAssistant, "The lamp is red.");
  add(Role::kUser, "And the door?");
  add(Role::kAssistant, "Green.");
  add(Role::kUser, "And the roof?");
  add(Role::kAssistant, "Blue.");
  add(Role::kUser, "So the lamp is?");
  return chat;
}

SegmentPtr segment(std::size_t first, std::size_t end, std::vector<Quote> quotes = {},
                   std::string summary = {}) {
  Segment made;
  made.first = first;
  made.end = end;
  made.quotes = std::move(quotes);
  made.summary = std::move(summary);
  return std::make_shared<const Segment>(std::move(made));
}

Quote quote(std::uint32_t entry, std::size_t tokens, Role role = Role::kUser) {
  Quote made;
  made.entry = entry;
  made.tokens = tokens;
  made.role = role;
  return made;
}

TEST_CASE("each fate, and why") {
  const HistoryChat chat = some_chat();
  const std::vector<SegmentPtr> segments = {segment(2, 8, {quote(2, 3), quote(5, 4), quote(5, 2)})};
  const std::vector<Quote> evidence = {quote(5, 4), quote(7, 2)};
  const Outcome outcome{segments, 0, 0, {}, evidence};
  const Reporter reporter(chat.view, outcome);
  struct Expected {
    MessageFate fate;
    std::size_t tokens;
    const char* why;
  };
  const std::vector<Expected> expected = {
      {MessageFate::kKept, chat.view[0].tokens, "a system message"},
      {MessageFate::kKept, chat.view[1].tokens, "pinned"},
      {MessageFate::kSummarized, 3, "old; what tells most stands in a segment"},
      {MessageFate::kDropped, 0, "old, and other messages tell more"},
      {MessageFate::kDropped, 0, "ephemeral, and room was needed"},
      {MessageFate::kQuoted, 10, "old, but answers the last user turn"},
      {MessageFate::kDropped, 0, "old, and other messages tell more"},
      {MessageFate::kQuoted, 2, "old, but answers the last user turn"},
      {MessageFate::kKept, chat.view[8].tokens, "recent"},
      {MessageFate::kKept, chat.view[9].tokens, "recent"},
      {MessageFate::kKept, chat.view[10].tokens, "the last user turn"},
  };
  REQUIRE(expected.size() == chat.view.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const MessageReport report = reporter.report(i);
    CAPTURE(i);
    CHECK(report.index == i);
    CHECK(report.id == std::to_string(i + 1));
    CHECK(report.fate == expected[i].fate);
    CHECK(report.tokens_before == chat.view[i].tokens_before);
    CHECK(report.tokens_after == expected[i].tokens);
    CHECK(report.why == expected[i].why);
  }
}

TEST_CASE("a summary stands for all but what is ephemeral") {
  const HistoryChat chat = some_chat();
  const std::vector<std::vector<SegmentPtr>> both = {
      {segment(2, 8, {}, "They spoke of lamps.")},
      {segment(2, 8, {quote(2, 9, Role::kSystem)})}};  // a sentence of an earlier summary
  for (const auto& segments : both) {
    const Outcome outcome{segments, 0, 0, {}, {}};
    const Reporter reporter(chat.view, outcome);
    CHECK(reporter.report(2).fate == MessageFate::kSummarized);
    CHECK(reporter.report(2).tokens_after == 0);
    CHECK(reporter.report(4).fate == MessageFate::kDropped);
    CHECK(reporter.report(7).why == "old; a summary stands for it");
  }
}

TEST_CASE("a window shortens, drops, and keeps what always stays") {
  const HistoryChat chat = some_chat();
  const Outcome outcome{{}, 0, 8, {{9, 2, 5}}, {}};
  const Reporter reporter(chat.view, outcome);
  CHECK(reporter.report(1).fate == MessageFate::kKept);
  CHECK(reporter.report(2).fate == MessageFate::kDropped);
  CHECK(reporter.report(7).why == "older than what fits");
  CHECK(reporter.report(8).fate == MessageFate::kKept);
  CHECK(reporter.report(9).fate == MessageFate::kShortened);
  CHECK(reporter.report(9).tokens_after == 5);
  CHECK(reporter.report(10).fate == MessageFate::kKept);
  const Outcome all_gone{{}, 0, 11, {}, {}};
  CHECK(Reporter(chat.view, all_gone).report(10).why == "the last user turn");
}

TEST_CASE("what may have changed between two prompts, once and in order") {
  using List = std::vector<std::size_t>;
  const SegmentPtr early = segment(0, 2, {quote(1, 1)}), late = segment(2, 4);
  const SegmentPtr merged = segment(0, 5);
  const std::vector<SegmentPtr> one = {early}, two = {early, late}, whole = {merged};
  CHECK(changed_messages({}, {}, 0, 0).empty());
  CHECK(changed_messages({}, {}, 4, 6) == List{4, 5});
  CHECK(changed_messages({one}, {two}, 6, 6) == List{2, 3});
  CHECK(changed_messages({two}, {two}, 6, 6).empty());
  CHECK(changed_messages({two}, {whole}, 6, 6) == List{1, 4});  // was quoted, and is new
  CHECK(changed_messages({{}, 0, 2}, {{}, 0, 5}, 6, 7) == List{2, 3, 4, 6});
  CHECK(changed_messages({{}, 0, 5}, {{}, 0, 2}, 6, 6) == List{2, 3, 4});
  const std::vector<Quote> old_evidence = {quote(3, 1), quote(1, 1)}, evidence = {quote(3, 1)};
  CHECK(changed_messages({two, 0, 0, {}, old_evidence}, {two, 0, 0, {{5, 0, 0}}, evidence}, 6, 6) ==
        List{1, 3, 5});
}

}  // namespace
}  // namespace incipit::test
