// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "incipit/compressor.h"
#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::inline v0 {
namespace {

using text::is_ascii;
using text::is_digit;
using text::is_letter;
using text::is_lower;
using text::is_space;
using text::is_upper;

// Sums are in hundredths of a token. The numbers for ASCII are averages of byte-pair vocabularies
// of about 50,000 tokens over English prose, code and tool output; those for other scripts lie
// between what small and large multilingual vocabularies take.
constexpr std::size_t kToken = 100;

struct Range {
  char32_t last = 0;
  std::uint16_t cost = 0;  // of one character
};
constexpr auto kScripts = std::to_array<Range>({
    {0xBF, 100},      // Latin-1 signs
    {0x24F, 60},      // letters with marks, each of which also ends a token
    {0x36F, 100},     // phonetic signs, combining marks
    {0x3FF, 75},      // Greek
    {0x52F, 60},      // Cyrillic
    {0x5FF, 80},      // Armenian, Hebrew
    {0x6FF, 75},      // Arabic
    {0x8FF, 80},      // Syriac and others
    {0xDFF, 110},     // scripts of India
    {0xEFF, 110},     // Thai, Lao
    {0x1FFF, 100},    // Tibetan to Greek extended
    {0x206F, 100},    // general punctuation
    {0x2E7F, 150},    // signs, arrows, frames, dingbats
    {0x303F, 100},    // CJK marks
    {0x30FF, 100},    // kana
    {0x33FF, 120},    // Bopomofo and others
    {0x4DBF, 200},    // rare Han
    {0x9FFF, 120},    // Han
    {0xABFF, 150},    // Yi and others
    {0xD7FF, 150},    // Hangul
    {0xFE2F, 200},    // private use, rare Han, variation selectors
    {0xFFEF, 100},    // full-width forms
    {0xFFFF, 200},    //
    {0x10FFFF, 250},  // emoji, rare Han
});

std::size_t cost_of(char32_t code) {
  const auto range = std::lower_bound(kScripts.begin(), kScripts.end(), code,
                                      [](const Range& a, char32_t b) { return a.last < b; });
  return range == kScripts.end() ? 2 * kToken : range->cost;
}

class Estimate {
 public:
  explicit Estimate(std::string_view text) : text_(text) {}

  std::size_t tokens() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (!is_ascii(c)) {
        add_other();
      } else if (is_letter(c)) {
        add_word();
      } else if (is_digit(c)) {
        sum_ += kToken;
        ++at_;
      } else if (is_space(c)) {
        add_space();
      } else {
        add_marks();
      }
    }
    return (sum_ + kToken - 1) / kToken;
  }

 private:
  bool behind_space() const { return at_ > 0 && text_[at_ - 1] == ' '; }

  /// Letters up to where another word begins: camelCase has two, HTMLParser as well.
  void add_word() {
    const bool spaced = at_ == 0 || behind_space() || text_[at_ - 1] == '\n';
    std::size_t end = at_;
    while (end < text_.size() && is_upper(text_[end])) ++end;
    const std::size_t capitals = end - at_;
    if (capitals < 2) {
      while (end < text_.size() && is_lower(text_[end])) ++end;
      add_letters(end - at_, capitals == 1, spaced);
    } else {
      const bool begins_next = end < text_.size() && is_lower(text_[end]);
      if (begins_next) --end;
      sum_ += kToken + kCapital * (end - at_ - 1);
    }
    at_ = end;
  }

  void add_letters(std::size_t size, bool is_capital, bool spaced) {
    const std::size_t common = is_capital ? 4 : spaced ? 7 : 4;  // letters of words of one token
    const std::size_t more =
        is_capital ? (spaced ? kCapitalMore : kBareCapitalMore) : (spaced ? kMore : kBareMore);
    const std::size_t beyond = size > common ? size - common : 0;
    sum_ += kToken + more * std::min(beyond, kMostBeyond) +
            kRareMore * (beyond > kMostBeyond ? beyond - kMostBeyond : 0);
  }

  /// One space belongs to the word or mark behind it, and so does the last one of several.
  void add_space() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    const std::size_t size = at_ - begin;
    const bool is_joined =
        text_[begin] == ' ' && at_ < text_.size() && !is_digit(text_[at_]) && size == 1;
    if (!is_joined) sum_ += kToken * (1 + size / kLongSpace);
  }

  void add_marks() {
    const std::size_t begin = at_;
    bool is_rule = true;
    while (at_ < text_.size() && is_ascii(text_[at_]) && !is_letter(text_[at_]) &&
           !is_digit(text_[at_]) && !is_space(text_[at_])) {
      is_rule = is_rule && text_[at_] == text_[begin];
      ++at_;
    }
    const std::size_t size = at_ - begin;
    sum_ += kToken + (is_rule ? kRuleMark : kMark) * (size - 1);
  }

  void add_other() {
    const text::Utf8Unit unit = text::first_unit(text_.substr(at_));
    const bool is_character = unit.kind == text::Utf8Unit::Kind::kCharacter;
    sum_ += is_character ? cost_of(unit.code) : kToken * unit.bytes;
    at_ += unit.bytes;
  }

  static constexpr std::size_t kCapital = 50;  // of each capital behind the first one
  static constexpr std::size_t kMore = 3, kBareMore = 14;
  static constexpr std::size_t kCapitalMore = 12, kBareCapitalMore = 25;
  static constexpr std::size_t kMostBeyond = 8, kRareMore = 35;
  static constexpr std::size_t kLongSpace = 32;
  static constexpr std::size_t kMark = 25, kRuleMark = 8;

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t sum_ = 0;
};

std::size_t rough_tokens(std::string_view text) { return Estimate(text).tokens(); }

}  // namespace

TokenCounter rough_token_counter() {
  constexpr std::size_t kAroundMessage = 5;
  TokenCounter counter;
  counter.text = rough_tokens;
  counter.message = [](const Message& message) {
    return rough_tokens(shown_text(message)) + kAroundMessage;
  };
  return counter;
}

}  // namespace incipit::inline v0
