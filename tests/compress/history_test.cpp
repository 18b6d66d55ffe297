// SPDX-License-Identifier: Apache-2.0
#include "compress/history.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compress/conversations.h"
#include "support/catch.h"

namespace incipit::test {
namespace {

using namespace compress;

Message say(Role role, std::string text) {
  Message message{.role = role};
  message.text = std::move(text);
  return message;
}

constexpr auto yes = [](std::size_t) { return true; };
constexpr auto no = [](std::size_t) { return false; };

TEST_CASE("digests tell messages apart by every field that a model sees") {
  const Message plain = say(Role::kUser, "ab");
  std::vector<Message> others(8, plain);
  others[0].role = Role::kAssistant;
  others[1].text.pop_back();
  others[2].text += '\0';
  others[3].tool_call_id.push_back('x');
  others[4].tool_calls = {{"", "", ""}};
  others[5].tool_calls = {{"", "", ""}, {"", "", ""}};
  others[6].tool_calls = {{"a", "b", ""}};
  others[7].tool_calls = {{"a", "", "b"}};
  others.push_back(plain);
  for (std::size_t i = 0; i < others.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) CHECK(digest_of(others[i]) != digest_of(others[j]));
  }
  Message named = plain;
  named.id.push_back('7');
  named.pinned = true;
  CHECK(digest_of(named) == digest_of(plain));
}

TEST_CASE("results belong to their call, unless a segment stands for that") {
  const CompressorOptions options;
  const TokenCounter counter = byte_counter();
  History history(options, counter);
  Message call = say(Role::kAssistant, "");
  call.tool_calls = {{"a", "f", "{}"}, {"b", "f", "{}"}};
  history.add(history.arriving(say(Role::kTool, "of nothing"), 0, yes, no));
  history.add(history.arriving(say(Role::kUser, "Go."), 0, yes, no));
  history.add(history.arriving(call, 0, yes, no));
  history.add(history.arriving(say(Role::kTool, "one"), 0, yes, no));
  // A window that left the call out comes back to it.
  CHECK(history.arriving(say(Role::kTool, "two"), 0, no, no).entry.unit == 2);
  CHECK(history.arriving(say(Role::kTool, "two"), 0, no, yes).entry.unit == 4);
  CHECK(history[0].unit == 0);
  CHECK(history[3].unit == 2);
  Message pinned = say(Role::kTool, "two");
  pinned.pinned = true;
  CHECK(history.fixed().empty());
  history.add(history.arriving(pinned, 0, yes, no));
  const View view(history);
  for (std::size_t i = 0; i < 5; ++i) CHECK(view.is_fixed(i) == (i >= 2));
  CHECK(view.unit_end(2) == 5);
  CHECK(history.fixed() == std::vector<std::uint32_t>{2, 3, 4});
}

TEST_CASE("what was sent, and the last user turn, arrive as they are") {
  const CompressorOptions options;
  const TokenCounter counter = byte_counter();
  const std::string filler = "I hope this email finds you well. The boiler is at 40 degrees.";
  History history(options, counter);
  history.add(history.arriving(say(Role::kUser, filler), 0, yes, no));
  CHECK(history[0].shown().text == filler);
  CHECK(history.last_turn() == std::pair<std::size_t, std::size_t>(0, 1));
  CHECK(history.arriving(say(Role::kAssistant, filler), 1, yes, no).entry.changed == nullptr);
  history.add(history.arriving(say(Role::kUser, "And?"), 0, yes, no));  // of the same turn
  CHECK(history.last_turn() == std::pair<std::size_t, std::size_t>(0, 2));
  history.add(history.arriving(say(Role::kAssistant, "Yes."), 0, yes, no));
  // Never sent, it may change as the next turn begins; sent, it may not.
  const Arrival next = history.arriving(say(Role::kUser, "Next."), 0, yes, no);
  REQUIRE(next.settled.size() == 2);
  CHECK(next.settled[0].second.tokens < history[0].tokens);
  CHECK(next.settled[1].second.changed == nullptr);
  CHECK(history.arriving(say(Role::kUser, "Next."), 3, yes, no).settled.empty());
  history.add(next);
  const View view(history);
  CHECK(view[0].tokens == next.settled[0].second.tokens);
  CHECK(view[1].shown().text == "And?");
  CHECK(view[2].shown().text == "Yes.");
  CHECK(view[3].shown().text == "Next.");
}

TEST_CASE("limits of tools have no end where they wrap") {
  CompressorOptions options;
  std::string text;
  for (std::size_t i = 0; i < 300; ++i)
    text.append("Row ").append(std::to_string(i * 7919)).append(" is right. ");
  for (const std::size_t tokens : {SIZE_MAX, SIZE_MAX / 4 + 1, SIZE_MAX / 4 + 2, SIZE_MAX / 2}) {
    options.max_tool_tokens = tokens;
    const TokenCounter counter = byte_counter();
    const History history(options, counter);
    CHECK(history.arriving(say(Role::kTool, text), 0, yes, no).entry.shown().text == text);
  }
  options.max_tool_tokens = 100;
  const TokenCounter counter = byte_counter();
  const History history(options, counter);
  CHECK(history.arriving(say(Role::kTool, text), 0, yes, no).entry.tokens < 150);
}

}  // namespace
}  // namespace incipit::test
