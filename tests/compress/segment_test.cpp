// SPDX-License-Identifier: Apache-2.0
#include "compress/segment.h"

#include <memory>
#include <string>
#include <vector>

#include "compress/conversations.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace compress;

Quote quote(std::uint32_t entry, Role role, std::size_t begin, std::string text,
            PieceKind kind = PieceKind::kSentence) {
  Quote made;
  made.entry = entry;
  made.role = role;
  made.begin = begin;
  made.tokens = byte_counter().text(text);
  made.text = std::move(text);
  made.kind = kind;
  return made;
}

Quote order(std::uint32_t entry, std::string text) {
  Quote made = quote(entry, Role::kUser, 0, std::move(text));
  made.order = made.must_keep = true;
  return made;
}

SegmentPtr segment(std::size_t first, std::size_t end) {
  Segment made;
  made.first = first;
  made.end = end;
  return std::make_shared<const Segment>(std::move(made));
}

TEST_CASE("quotes read by speaker, and orders behind them") {
  const std::vector<Quote> quotes = {
      quote(3, Role::kUser, 0, "One. "),
      quote(3, Role::kUser, 5, "Two. "),
      order(3, "Never lie. "),
      quote(4, Role::kAssistant, 0, "Three."),
      quote(5, Role::kTool, 9, "ok\n"),
      quote(6, Role::kSystem, 0, "Four.  "),
      order(7, "不要删除。"),
  };
  CHECK(render_quotes("Head:", {}, quotes) ==
        "Head:\nUser: One. Two.\nAssistant: Three.\nTool: ok\nSystem: Four.\n"
        "Still in force:\n- Never lie. \n- 不要删除。");
  CHECK(render_quotes("Head:", "It was said.", {quotes[0], quotes[1]}) ==
        "Head:\nIt was said.\nUser: One. Two.");
  CHECK(render_quotes("Head:", {}, {quotes[2]}) == "Head:\nStill in force:\n- Never lie. ");
  CHECK(render_quotes("Head:", {}, {}) == "Head:");
}

TEST_CASE("code and tables stand on lines of their own") {
  const std::string code = "```\nint i;\n```\n";
  const std::vector<Quote> quotes = {quote(0, Role::kUser, 0, "Look. "),
                                     quote(0, Role::kUser, 40, code, PieceKind::kCode),
                                     quote(0, Role::kUser, 90, "Good?"),
                                     quote(1, Role::kTool, 0, "| a |\n| 1 |", PieceKind::kTable)};
  CHECK(render_quotes("Head:", {}, quotes) ==
        "Head:\nUser: Look.\n```\nint i;\n```\nGood?\nTool:\n| a |\n| 1 |");
}

TEST_CASE("the most salient quotes that fit, in their order, and all that must stay") {
  std::vector<Quote> quotes;
  for (std::uint32_t i = 0; i < 20; ++i) {
    quotes.push_back(quote(i, Role::kUser, 0, "Sentence number " + std::to_string(i) + ". "));
    quotes.back().salience = i % 5;
  }
  const TokenCounter counter = byte_counter();
  std::size_t before = 0;
  for (std::size_t room = 0; room < 200; ++room) {
    const Fitted fitted = fit_quotes("Head:", {}, quotes, room, counter);
    CAPTURE(room);
    CHECK(fitted.tokens <= room);
    CHECK(fitted.quotes.size() >= before);
    before = fitted.quotes.size();
    if (fitted.tokens > 0) CHECK(fitted.tokens == counter.message(fitted.message));
    for (std::size_t i = 1; i < fitted.quotes.size(); ++i) {
      CHECK(fitted.quotes[i - 1].entry < fitted.quotes[i].entry);
    }
    if (fitted.quotes.size() == 1) CHECK(fitted.quotes[0].entry == 19);
  }
  CHECK(before == quotes.size());
  quotes[7].must_keep = true;
  const Fitted least = fit_quotes("Head:", {}, quotes, 0, counter);
  REQUIRE(least.quotes.size() == 1);
  CHECK(least.quotes[0].entry == 7);
  CHECK(least.tokens > 0);
  CHECK(fit_quotes("Head:", {}, {}, 100, counter).tokens == 0);
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

TEST_CASE("a segment is found by any message that it stands for") {
  std::vector<SegmentPtr> segments;
  CHECK(segment_of(segments, 0) == nullptr);
  const SegmentPtr late = segment(15, 17), early = segment(1, 15);
  insert_segment(segments, late);
  insert_segment(segments, early);
  REQUIRE(segments.size() == 2);
  CHECK(segments[0] == early);
  CHECK(segment_of(segments, 0) == nullptr);
  CHECK(segment_of(segments, 1) == early.get());
  CHECK(segment_of(segments, 14) == early.get());
  CHECK(segment_of(segments, 15) == late.get());
  CHECK(segment_of(segments, 16) == late.get());
  CHECK(segment_of(segments, 17) == nullptr);
  insert_segment(segments, segment(15, 20));  // takes the place of the late one only
  CHECK(segments.size() == 2);
  CHECK(segment_of(segments, 19) == segments[1].get());
  insert_segment(segments, segment(0, 20));
  REQUIRE(segments.size() == 1);
  CHECK(segment_of(segments, 0) == segments[0].get());
}

TEST_CASE("a segment of which nothing is left takes nothing") {
  Segment empty;
  empty.first = 1;
  empty.end = 5;
  finish_segment(empty, byte_counter());
  CHECK(empty.tokens == 0);
  CHECK(empty.message.text.empty());
  Segment told = empty;
  told.summary = "They met.";
  finish_segment(told, byte_counter());
  CHECK(told.message.role == Role::kSystem);
  CHECK(told.message.text == std::string(kSegmentHeading) + "\nThey met.");
  CHECK(told.tokens == byte_counter().message(told.message));
  CHECK_FALSE(told.digest == empty.digest);
}

}  // namespace
}  // namespace incipit::test
