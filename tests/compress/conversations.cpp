// SPDX-License-Identifier: Apache-2.0
#include "compress/conversations.h"

#include <array>
#include <string_view>

namespace incipit::test {
namespace {

constexpr std::size_t kTokenBytes = 4;
constexpr std::size_t kMessageTokens = 4;

constexpr auto kNouns = std::to_array<std::string_view>(
    {"the gearbox", "our invoice", "a red lamp", "the ferry", "my sister", "the server room",
     "Dr. Weber", "the bakery in Lyon", "an old map", "the third draft", "the spare key"});
constexpr auto kVerbs = std::to_array<std::string_view>(
    {"arrived", "was sold", "needs oil", "did not start", "costs 1,234.56 euros", "fell down",
     "moved to /etc/incipit", "was seen by Ada", "runs on port 8080", "opens at 7 a.m."});
constexpr auto kChinese = std::to_array<std::string_view>(
    {"我们明天上午九点在北京南站见面。", "请把报告发给王经理！", "价格是三百二十元，不能再低了。",
     "他说：“这个方案没有问题。”", "服务器昨晚重启了两次；日志在这里。"});
constexpr auto kOthers = std::to_array<std::string_view>(
    {"昨日の会議は中止になりました。", "これは新しい部品ですか？", "وصلت الرسالة أمس. ",
     "هل تم إصلاح الخادم؟ ", "Party at 8 👩‍👩‍👧‍👦🎉 bring 🇫🇷 flags! ",
     "naïve café déjà vu. "});

template <std::size_t n>
std::string_view pick(Dice& dice, const std::array<std::string_view, n>& from) {
  return from[dice.below(n)];
}

std::string numbered(std::string_view front, std::size_t number, std::string_view back = {}) {
  std::string text(front);
  text += std::to_string(number);
  text += back;
  return text;
}

Message of(Role role, std::string text, std::size_t number) {
  Message message{.role = role};
  message.text = std::move(text);
  message.id = numbered("m", number);
  return message;
}

void add_tool_round(Dice& dice, const ConversationOptions& options, std::vector<Message>& out) {
  Message call = of(Role::kAssistant, dice.one_in(2) ? "" : some_sentence(dice), out.size());
  const std::size_t calls = 1 + dice.below(2);
  for (std::size_t i = 0; i < calls; ++i) {
    const std::string id = numbered(numbered("call", out.size(), "_"), i);
    call.tool_calls.push_back({id, "look_up", numbered("{\"n\": ", dice.below(999), "}")});
  }
  out.push_back(call);
  for (const ToolCall& made : call.tool_calls) {
    Message result =
        of(Role::kTool, some_text(dice, 1 + dice.below(options.sentences)), out.size());
    result.tool_call_id = made.id;
    out.push_back(std::move(result));
  }
}

}  // namespace

TokenCounter byte_counter() {
  TokenCounter counter;
  counter.text = [](std::string_view text) {
    return (text.size() + kTokenBytes - 1) / kTokenBytes;
  };
  counter.message = [](const Message& message) {
    return (shown_text(message).size() + kTokenBytes - 1) / kTokenBytes + kMessageTokens;
  };
  counter.prompt = 3;
  return counter;
}

std::uint64_t Dice::next() {
  // SplitMix64 (Steele, Lea, Flood, 2014).
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

std::string some_sentence(Dice& dice) {
  switch (dice.below(10)) {
    case 0:
    case 1:
      return numbered("第", dice.below(9999), "条：") + std::string(pick(dice, kChinese));
    case 2:
      return numbered("(", dice.below(9999), ") ") + std::string(pick(dice, kOthers));
    case 3:
      return numbered("- item ", dice.below(100), "\r\n");
    case 4:
      return "Is it true that " + std::string(pick(dice, kNouns)) + " " +
             std::string(pick(dice, kVerbs)) + "? ";
    default:
      return numbered("On day ", dice.below(365), " ") + std::string(pick(dice, kNouns)) + " " +
             std::string(pick(dice, kVerbs)) + ". ";
  }
}

std::string some_text(Dice& dice, std::size_t sentences) {
  std::string text;
  for (std::size_t i = 0; i < sentences; ++i) text += some_sentence(dice);
  if (dice.one_in(8)) {
    text += numbered("\n```cpp\nint f", dice.below(99), "() {\n  return 7;  // no. 7\n}\n```\n");
  }
  if (dice.one_in(8)) {
    text += numbered("\n{\"name\": \"caf\\u00e9\", \"n\": [", dice.below(99), ", 2, 3]}\n");
  }
  if (dice.one_in(16)) text += "\n2024-05-01 12:00:00 ERROR disk is full\n";
  return text;
}

std::vector<Message> some_conversation(Dice& dice, const ConversationOptions& options) {
  std::vector<Message> out;
  out.push_back(of(Role::kSystem, "You are a careful assistant.", 0));
  for (std::size_t turn = 0; turn < options.turns; ++turn) {
    out.push_back(of(Role::kUser, some_text(dice, 1 + dice.below(options.sentences)), out.size()));
    if (options.flags) {
      Message& user = out.back();
      user.pinned = dice.one_in(40);
      user.constraint = dice.one_in(40);
      user.no_compress = dice.one_in(20);
      user.ephemeral = dice.one_in(20);
    }
    for (std::size_t rounds = options.tools ? dice.below(3) : 0; rounds > 0; --rounds) {
      add_tool_round(dice, options, out);
    }
    out.push_back(
        of(Role::kAssistant, some_text(dice, 1 + dice.below(options.sentences)), out.size()));
  }
  if (dice.one_in(2)) out.push_back(of(Role::kUser, some_sentence(dice), out.size()));
  return out;
}

}  // namespace incipit::test
