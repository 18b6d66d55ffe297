// SPDX-License-Identifier: Apache-2.0
#include "prompt_tokens.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace bench {

using incipit::Message;

namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kSystemTokens = 400;

bool equal(const Message& a, const Message& b) {
  return a.role == b.role && a.tool_call_id == b.tool_call_id && shown_text(a) == shown_text(b);
}

}  // namespace

std::size_t PromptTokens::sum(std::span<const Message> messages) const {
  std::size_t tokens = 0;
  for (const Message& message : messages) tokens += counter_.message(message);
  return tokens;
}

std::size_t PromptTokens::count(std::span<const Message> prompt) const {
  return engine_ != nullptr ? engine_->tokenize(prompt).size() : counter_.prompt + sum(prompt);
}

std::size_t PromptTokens::shared(std::span<const Message> prompt,
                                 std::span<const Message> sent) const {
  if (sent.empty()) return 0;
  std::size_t tokens = 0;
  if (engine_ != nullptr) {
    const std::vector<incipit::TokenId> now = engine_->tokenize(prompt);
    std::vector<incipit::TokenId> held = engine_->tokenize(sent);
    // A conversation is rendered with the next reply begun, which nobody computed.
    held.resize(std::min(held.size(), sum(sent)));
    const auto differ = std::mismatch(now.begin(), now.end(), held.begin(), held.end());
    tokens = static_cast<std::size_t>(differ.first - now.begin());
  } else {
    const auto differ =
        std::mismatch(prompt.begin(), prompt.end(), sent.begin(), sent.end(), equal);
    tokens = sum(prompt.first(static_cast<std::size_t>(differ.first - prompt.begin())));
    if (differ.first != prompt.end() && differ.second != sent.end() &&
        differ.first->role == differ.second->role) {
      const std::string a = shown_text(*differ.first), b = shown_text(*differ.second);
      const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
      tokens +=
          counter_.text(std::string_view(a).substr(0, static_cast<std::size_t>(end - a.begin())));
    }
  }
  return tokens / kBlock * kBlock;
}

Message system_prompt(const incipit::TokenCounter& counter) {
  constexpr std::string_view kWords =
      "You are a careful assistant in a long conversation. Answer in the language of the user, in "
      "full sentences, and keep to what was said. Where you do not know, say so and ask. ";
  Message prompt{.role = incipit::Role::kSystem, .id = "system"};
  // A front of the words, repeated, that is one word longer each time.
  for (std::size_t begin = 0, end = 0;; begin = end % kWords.size()) {
    end = kWords.find(' ', begin) + 1;
    const std::size_t before = prompt.text.size();
    prompt.text += kWords.substr(begin, end - begin);
    if (counter.message(prompt) <= kSystemTokens) continue;
    prompt.text.resize(before);
    return prompt;
  }
}

}  // namespace bench
