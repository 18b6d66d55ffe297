// SPDX-License-Identifier: Apache-2.0
#include "critical.h"

#include <algorithm>
#include <string>

#include "text/segmentation.h"

namespace bench {
namespace {

constexpr std::array<std::string_view, 11> kNegations{"no",     "not",     "never",   "none",
                                                      "nobody", "nothing", "neither", "nor",
                                                      "cannot", "without", "nowhere"};
constexpr std::array<std::string_view, 7> kNegatingCharacters{"不", "没", "无", "未",
                                                              "别", "勿", "非"};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_negation(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return is_one_of(kNegations, lower) || lower.ends_with("n't") || lower.ends_with("n\u2019t");
}

bool is_identifier(std::string_view word) {
  const std::string_view rest = word.substr(1);
  return std::any_of(rest.begin(), rest.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

CriticalCounts count_critical(std::string_view text) {
  using Kind = incipit::text::Word::Kind;
  CriticalCounts counts;
  auto& [numbers, negations, identifiers] = counts.counts;
  incipit::text::WordScanner scanner(text);
  for (incipit::text::Word word; scanner.next(word);) {
    const std::string_view found = word.span.of(text);
    if (word.kind == Kind::kNumber) ++numbers;
    if (word.kind == Kind::kCharacter && is_one_of(kNegatingCharacters, found)) ++negations;
    if (word.kind == Kind::kLetters && is_negation(found)) ++negations;
    if (word.kind == Kind::kLetters && is_identifier(found)) ++identifiers;
  }
  return counts;
}

}  // namespace bench
