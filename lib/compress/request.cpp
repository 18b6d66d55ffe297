// SPDX-License-Identifier: Apache-2.0
#include "compress/request.h"

#include <algorithm>
#include <array>
#include <string>

#include "text/ascii.h"
#include "text/segmentation.h"

namespace incipit::compress {
namespace {

using text::to_lower;

/// Begin a sentence that asks, alphabetical.
constexpr std::array<std::string_view, 55> kFirstWords{
    "add",      "address",   "book",     "bring",  "calculate", "check",     "choose",    "compare",
    "compute",  "confirm",   "describe", "draft",  "explain",   "find",      "get",       "give",
    "help",     "how",       "list",     "look",   "name",      "order",     "pick",      "plan",
    "please",   "propose",   "put",      "recall", "recommend", "remember",  "remind",    "repeat",
    "schedule", "send",      "set",      "show",   "suggest",   "summarise", "summarize", "tell",
    "think",    "translate", "update",   "use",    "what",      "when",      "where",     "which",
    "who",      "whom",      "whose",    "why",    "write",     "can",       "could"};
/// In front of such a word, without changing anything.
constexpr std::array<std::string_view, 8> kLeadIns{"and", "but",  "kindly", "now",
                                                   "ok",  "okay", "so",     "then"};
/// Words that point back wherever they stand, in lower case.
constexpr std::array<std::string_view, 10> kPhrases{
    "remind me", "tell me",  "i forgot",    "i forget", "remember",
    "i wonder",  "told you", "i mentioned", "you said", "let me know"};
/// The same in Chinese, and its words of asking.
constexpr std::array<std::string_view, 26> kChinesePhrases{
    "帮我",   "帮忙", "提醒", "告诉我", "记得", "忘了", "给我", "说说", "查一下",
    "看一下", "推荐", "请问", "请你",   "请帮", "请把", "请给", "什么", "哪",
    "谁",     "多少", "几点", "几号",   "怎么", "为何", "吗",   "呢"};
constexpr std::array<std::string_view, 3> kQuestionMarks{"?", "\uFF1F", "\u061F"};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& list, std::string_view word) noexcept {
  return std::find(list.begin(), list.end(), word) != list.end();
}

template <std::size_t count>
bool holds_one_of(const std::array<std::string_view, count>& list, std::string_view text) noexcept {
  return std::any_of(list.begin(), list.end(), [text](std::string_view phrase) {
    return text.find(phrase) != std::string_view::npos;
  });
}

bool begins_as_request(std::string_view sentence) noexcept {
  text::WordScanner scanner(sentence);
  text::Word word;
  bool more = scanner.next(word);
  while (more && is_one_of(kLeadIns, word.span.of(sentence))) more = scanner.next(word);
  return more && is_one_of(kFirstWords, word.span.of(sentence));
}

}  // namespace

bool is_request(std::string_view text) {
  if (holds_one_of(kQuestionMarks, text)) return true;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
  if (holds_one_of(kPhrases, lower) || holds_one_of(kChinesePhrases, lower)) return true;
  const std::vector<text::Span> sentences = text::sentences(lower);
  return std::any_of(sentences.begin(), sentences.end(), [&](const text::Span& sentence) {
    return begins_as_request(sentence.of(lower));
  });
}

}  // namespace incipit::compress
