// SPDX-License-Identifier: Apache-2.0
#include "sampler/letter.h"

#include <array>

#include "text/ascii.h"

namespace incipit::sampler {
namespace {

using text::is_digit;
using text::is_letter;
using text::is_space;
using text::to_lower;
using text::to_upper;
using text::trimmed;

constexpr std::string_view kOpening = "([{*", kClosing = ")]}*";

bool is_one_of(std::string_view characters, char c) {
  return characters.find(c) != std::string_view::npos;
}

/// Part of a word: bytes of other scripts' letters, too.
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

char before(std::string_view text, std::size_t i) { return i == 0 ? ' ' : text[i - 1]; }
char behind(std::string_view text, std::size_t i) {
  return i + 1 < text.size() ? text[i + 1] : ' ';
}

bool in_brackets(std::string_view text, std::size_t i) {
  const std::size_t kind = kOpening.find(before(text, i));
  return kind != std::string_view::npos && behind(text, i) == kClosing[kind];
}

/// By itself, and no word: "a" and "I" are words where another one follows them.
bool stands_alone(std::string_view text, std::size_t i) {
  // Not a part of "A's", "it's a", "A-level" or "x=A+1".
  constexpr std::string_view kEnds = ".,;:!?)]}*\"\n\r";
  if (is_word(before(text, i)) || before(text, i) == '\'' || before(text, i) == '-') return false;
  if (i + 1 >= text.size() || is_one_of(kEnds, text[i + 1])) return true;
  if (text[i + 1] != ' ') return false;
  if (to_upper(text[i]) != 'A' && to_upper(text[i]) != 'I') return true;
  const std::size_t next = text.find_first_not_of(' ', i + 1);
  return next == std::string_view::npos || !is_word(text[next]);
}

/// Whether "answer is", "Answer:", "option" or "choice" precedes what begins at `i`.
bool is_announced(std::string_view text, std::size_t i) {
  constexpr std::array<std::string_view, 3> kWords = {"answer", "option", "choice"};
  const auto skip = [&](std::string_view characters) {
    while (i > 0 && is_one_of(characters, text[i - 1])) --i;
  };
  skip("([{*\"' \t\n\r:=");
  if (i >= 2 && to_lower(text[i - 2]) == 'i' && to_lower(text[i - 1]) == 's') {
    i -= 2;
    skip(" \t");
  }
  for (const std::string_view word : kWords) {
    if (i < word.size()) continue;
    bool equal = true;
    for (std::size_t k = 0; k < word.size(); ++k) {
      equal = equal && to_lower(text[i - word.size() + k]) == word[k];
    }
    if (equal) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> single_letter(std::string_view answer) {
  const std::string_view text =
      trimmed(answer, [](char c) { return is_space(c) || is_one_of("()[]{}*.,:;\"'`$", c); });
  if (text.size() != 1 || !is_letter(text[0])) return std::nullopt;
  return std::string(1, to_upper(text[0]));
}

std::optional<std::string> answer_letter(std::string_view text, std::size_t choices) {
  const auto is_choice = [&](char c) {
    return is_letter(c) && static_cast<std::size_t>(to_upper(c) - 'A') < choices;
  };
  if (const auto only = single_letter(text); only && is_choice((*only)[0])) return only;
  // The best kind of mention wins, then the last one.
  enum { kNone, kAlone, kBracketed, kAnnounced } best = kNone;
  char found = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_choice(text[i])) continue;
    const bool capital = text[i] < 'a', bracketed = in_brackets(text, i);
    auto kind = kNone;
    if (bracketed || stands_alone(text, i)) {
      if (is_announced(text, i)) {
        kind = kAnnounced;
      } else if (bracketed && (capital || before(text, i) == '(')) {
        kind = kBracketed;
      } else if (capital) {
        kind = kAlone;
      }
    }
    if (kind == kNone || kind < best) continue;
    best = kind;
    found = to_upper(text[i]);
  }
  if (best == kNone) return std::nullopt;
  return std::string(1, found);
}

}  // namespace incipit::sampler
