// SPDX-License-Identifier: Apache-2.0
#include "compress/salience.h"

#include <algorithm>
#include <array>

#include "retrieve/fixed_point.h"
#include "retrieve/terms.h"
#include "text/ascii.h"
#include "text/segmentation.h"

namespace incipit::compress {
namespace {

using text::is_digit;
using text::is_upper;
using text::trimmed;
using text::Word;

/// More names or numbers than this make a list of a piece, not news.
constexpr std::uint64_t kMostCounted = 8;

/// A capital that no sentence begins with, several capitals, or an identifier with digits in it or
/// underscores.
bool is_name(std::string_view word, bool first) noexcept {
  if (is_upper(word.front()) && !first && word.size() > 1) return true;
  const std::string_view rest = word.substr(1);
  return std::any_of(rest.begin(), rest.end(),
                     [](char c) { return is_upper(c) || is_digit(c) || c == '_'; });
}

constexpr std::array<std::string_view, 12> kClosing{
    "\"", "'", ")", "]", "}", "*", "\u2019", "\u201D", "\u300D", "\u300F", "\uFF09", "\u300B"};
constexpr std::array<std::string_view, 4> kQuestionMarks{"?", "\uFF1F", "\u061F", "\u2047"};

}  // namespace

bool ends_in_question(std::string_view text) noexcept {
  const auto ends = [&](std::string_view mark) { return text.ends_with(mark); };
  for (text = trimmed(text); !text.empty();) {
    if (std::any_of(kQuestionMarks.begin(), kQuestionMarks.end(), ends)) return true;
    const auto* const closing = std::find_if(kClosing.begin(), kClosing.end(), ends);
    if (closing == kClosing.end()) return false;
    text = trimmed(text.substr(0, text.size() - closing->size()));
  }
  return false;
}

std::uint64_t salience(std::string_view piece, const retrieve::Bm25& index) {
  std::uint64_t sum = 0, terms = 0, names = 0, numbers = 0;
  bool first = true;
  // Where terms are in the index is fetched some terms before it is looked at.
  std::array<std::uint64_t, 64> due;
  std::size_t waiting = 0;
  const auto look_up = [&] {
    for (std::size_t i = 0; i < waiting; ++i) sum += index.idf(due[i]);
    waiting = 0;
  };
  const auto add = [&](std::uint64_t term) {
    index.prefetch(term);
    due[waiting++] = term;
    ++terms;
    if (waiting == due.size()) look_up();
  };
  const auto count = [&](const Word& word) {
    if (word.kind == Word::Kind::kNumber) ++numbers;
    if (word.kind == Word::Kind::kLetters && is_name(word.span.of(piece), first)) ++names;
    first = false;
  };
  retrieve::for_each_term(piece, add, count);
  if (terms == 0) return 0;
  look_up();

  // The root in 1/256, of at most 2^24 terms.
  const std::uint64_t root = retrieve::square_root(std::min<std::uint64_t>(terms, 1 << 24) << 16);
  names = std::min(names, kMostCounted);
  numbers = std::min(numbers, kMostCounted);
  const std::uint64_t value = (sum << 8) / root * (4 + names) / 4 * (10 + 3 * numbers) / 10;
  return ends_in_question(piece) ? value / 2 : value;
}

}  // namespace incipit::compress
