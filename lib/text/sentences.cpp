// SPDX-License-Identifier: Apache-2.0
#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "text/ascii.h"
#include "text/segmentation.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

/// What the end of a sentence may look like.
enum class Mark : std::uint8_t {
  kNone,
  kLineBreak,
  kStop,    // '.' and the ellipsis: ends one in front of white space, if it is no abbreviation
  kSpaced,  // '!', '?', ';': ends one in front of white space
  kFull,    // of scripts that put no space behind it
};

/// Bytes at which a mark may begin.
constexpr auto kMayBegin = [] {
  std::array<bool, 256> may{};
  for (const unsigned byte : {0x0Au, 0x0Du, 0x21u, 0x2Eu, 0x3Bu, 0x3Fu}) may[byte] = true;
  for (const unsigned byte : {0xC2u, 0xD6u, 0xD8u, 0xDBu, 0xE0u, 0xE1u, 0xE2u, 0xE3u, 0xEFu}) {
    may[byte] = true;
  }
  return may;
}();

constexpr Mark mark_of(char32_t code) noexcept {
  switch (code) {
    case '\n':
    case '\r':
    case 0x0085:
    case 0x2028:
    case 0x2029:
      return Mark::kLineBreak;
    case '.':
    case 0x2026:  // ellipsis
      return Mark::kStop;
    case '!':
    case '?':
    case ';':
    case 0x203C:  // double marks
    case 0x2047:
    case 0x2048:
    case 0x2049:
      return Mark::kSpaced;
    case 0x0589:  // Armenian
    case 0x061F:  // Arabic question mark
    case 0x06D4:  // Urdu
    case 0x0964:  // danda, double danda
    case 0x0965:
    case 0x104A:  // Burmese
    case 0x104B:
    case 0x1362:  // Ethiopic
    case 0x17D4:  // Khmer
    case 0x17D5:
    case 0x3002:  // ideographic full stop, and full-width and half-width marks
    case 0xFF01:
    case 0xFF1B:
    case 0xFF1F:
    case 0xFF61:
      return Mark::kFull;
    default:
      return Mark::kNone;
  }
}

/// Quotation marks and brackets that still belong to the sentence that ended in front of them.
constexpr bool closes(char32_t code) noexcept {
  switch (code) {
    case '"':
    case '\'':
    case ')':
    case ']':
    case '}':
    case '*':  // emphasis of Markdown
    case 0x00BB:
    case 0x2019:
    case 0x201D:
    case 0x3009:
    case 0x300B:
    case 0x300D:
    case 0x300F:
    case 0x3011:
    case 0xFF09:
      return true;
    default:
      return false;
  }
}

constexpr bool is_blank(char32_t code) noexcept {
  return code == ' ' || code == '\t' || code == '\v' || code == '\f' || code == 0x00A0 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x202F || code == 0x205F || code == 0x3000;
}

constexpr std::size_t kLongestAbbreviation = 6;

/// Stand in front of a name or a phrase, so never at the end.
constexpr std::array<std::string_view, 31> kAlways{
    "approx", "ca",  "capt", "cf",   "col",  "dr",  "eg", "fig",    "figs", "gen", "gov",
    "hon",    "ie",  "lt",   "maj",  "mr",   "mrs", "ms", "mt",     "prof", "rep", "rev",
    "sen",    "sgt", "st",   "supt", "univ", "viz", "vs", "messrs", "esp"};
/// End a sentence unless a number follows.
constexpr std::array<std::string_view, 28> kBeforeNumber{
    "apr", "art",  "aug", "ch",  "dec", "ed",  "eq",  "feb", "jan", "jul",
    "jun", "mar",  "no",  "nos", "nov", "oct", "p",   "par", "pp",  "sec",
    "sep", "sept", "tel", "vol", "ext", "max", "min", "eqs"};
/// End a sentence unless it goes on in lower case.
constexpr std::array<std::string_view, 15> kBeforeLowerCase{"al",  "avg", "co",   "corp", "dept",
                                                            "eds", "est", "etc",  "inc",  "jr",
                                                            "ltd", "sr",  "govt", "assn", "bros"};

template <std::size_t count>
bool is_one_of(const std::array<std::string_view, count>& list, std::string_view word) noexcept {
  return std::find(list.begin(), list.end(), word) != list.end();
}

class Splitter {
 public:
  Splitter(std::string_view text, base::FunctionRef<void(Span)> take) : text_(text), take_(take) {}

  void split() {
    std::size_t at = behind_front_space();
    while (at < text_.size()) {
      if (!kMayBegin[static_cast<unsigned char>(text_[at])]) {
        ++at;
        continue;
      }
      const Unit mark = unit_at(at);
      switch (mark_of(mark.code)) {
        case Mark::kNone:
          at = mark.end;
          break;
        case Mark::kLineBreak:
          end_sentence(at = behind_line_breaks(at));
          break;
        default:
          at = after_mark(at);
      }
    }
    if (begin_ < text_.size()) end_sentence(text_.size());
  }

 private:
  struct Unit {
    std::size_t end = 0;
    char32_t code = 0;  // 0 for what is no character
  };

  Unit unit_at(std::size_t at) const noexcept {
    if (at == text_.size()) return {at, 0};
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte < 0x80) return {at + 1, byte};
    const Utf8Unit unit = first_unit(text_.substr(at));
    return {at + unit.bytes, unit.code};
  }

  /// White space in front of the first word, which is no sentence.
  std::size_t behind_front_space() const noexcept {
    std::size_t at = 0;
    for (Unit unit = unit_at(at); at < text_.size(); unit = unit_at(at)) {
      if (!is_blank(unit.code) && mark_of(unit.code) != Mark::kLineBreak) break;
      at = unit.end;
    }
    return at;
  }

  /// `at` stands on a line break: behind it and all empty lines.
  std::size_t behind_line_breaks(std::size_t at) const noexcept {
    std::size_t end = at;
    for (Unit unit = unit_at(at); at < text_.size(); unit = unit_at(at)) {
      const bool line_break = mark_of(unit.code) == Mark::kLineBreak;
      if (!line_break && !is_blank(unit.code)) return end;
      at = unit.end;
      if (line_break) end = at;
    }
    return at;
  }

  /// A run of marks and closing signs begins at `at`. Ends the sentence there if it does end.
  /// Returns where to go on.
  std::size_t after_mark(std::size_t at) {
    const std::size_t first = at;
    bool full = false;
    bool stops_only = true;
    std::size_t marks = 0;
    Unit unit = unit_at(at);
    char32_t last = unit.code;
    for (;; unit = unit_at(at)) {
      const Mark mark = mark_of(unit.code);
      if (mark == Mark::kNone || mark == Mark::kLineBreak) break;
      full = full || mark == Mark::kFull;
      stops_only = stops_only && mark == Mark::kStop;
      ++marks;
      last = unit.code;
      at = unit.end;
    }
    for (; closes(unit.code); unit = unit_at(at)) {
      last = unit.code;
      at = unit.end;
    }
    if (extends(last, unit.code)) return at;

    const std::size_t end = behind_white_space(at);
    const bool spaced = end > at || end == text_.size();
    if (!full && !spaced) return at;
    if (stops_only && !full && marks == 1 && goes_on(first, end)) return end;
    end_sentence(end);
    return end;
  }

  /// Whether what follows belongs to the same grapheme.
  static bool extends(char32_t last, char32_t next) noexcept {
    return next >= 0x80 && utf8proc_grapheme_break(static_cast<utf8proc_int32_t>(last),
                                                   static_cast<utf8proc_int32_t>(next)) == 0;
  }

  /// Behind blanks, and the line breaks behind those.
  std::size_t behind_white_space(std::size_t at) const noexcept {
    std::size_t last = at;
    Unit unit = unit_at(at);
    for (; at < text_.size() && is_blank(unit.code); unit = unit_at(at)) {
      last = at;
      at = unit.end;
    }
    if (at < text_.size() && mark_of(unit.code) == Mark::kLineBreak) return behind_line_breaks(at);
    // A mark may combine with the last blank.
    return last != at && extends(unit_at(last).code, unit.code) ? last : at;
  }

  /// Whether the sentence goes on behind the full stop at `stop`; `next` is what follows, behind
  /// white space.
  bool goes_on(std::size_t stop, std::size_t next) const noexcept {
    const char follows = next < text_.size() ? text_[next] : '\0';
    if (follows == '\0' || next == 0 || text_[next - 1] == '\n' || text_[next - 1] == '\r') {
      return false;
    }
    std::size_t begin = stop;
    const std::size_t floor = std::max(begin_, stop - std::min(stop, kLongestAbbreviation + 1));
    while (begin > floor && is_letter(text_[begin - 1])) --begin;
    const std::string_view word = text_.substr(begin, stop - begin);
    if (word.empty()) return is_list_number(stop);
    if (word.size() > kLongestAbbreviation) return false;
    if (begin > begin_ && (is_digit(text_[begin - 1]) || text_[begin - 1] == '_')) return false;

    const bool dotted = begin >= begin_ + 2 && text_[begin - 1] == '.';
    if (word.size() == 1) {
      if (dotted && is_latin_phrase(text_[begin - 2], word[0])) return true;
      if (dotted) return is_lower(follows) || is_digit(follows) || is_upper(word[0]);
      if (is_upper(word[0])) return word[0] != 'I';  // an initial
    }
    return is_abbreviation(word, follows);
  }

  /// "e.g." and "i.e.", by their letters.
  static bool is_latin_phrase(char first, char second) noexcept {
    return (first == 'e' && second == 'g') || (first == 'i' && second == 'e');
  }

  static bool is_abbreviation(std::string_view word, char follows) noexcept {
    std::array<char, kLongestAbbreviation> buffer{};
    const std::size_t size = std::min(word.size(), buffer.size());
    for (std::size_t i = 0; i < size; ++i) {
      buffer[i] = to_lower(word[i]);
    }
    const std::string_view lower(buffer.data(), size);
    return is_one_of(kAlways, lower) || (is_digit(follows) && is_one_of(kBeforeNumber, lower)) ||
           (is_lower(follows) && is_one_of(kBeforeLowerCase, lower));
  }

  /// "12." at the front of a sentence counts what follows.
  bool is_list_number(std::size_t stop) const noexcept {
    std::size_t begin = stop;
    while (begin > begin_ && stop - begin < 4 && is_digit(text_[begin - 1])) --begin;
    while (begin > begin_ && stop - begin < 8 && text_[begin - 1] == ' ') --begin;
    return begin == begin_ && begin != stop;
  }

  void end_sentence(std::size_t end) {
    take_({begin_, end});
    begin_ = end;
  }

  std::string_view text_;
  base::FunctionRef<void(Span)> take_;
  std::size_t begin_ = 0;  // of the sentence
};

}  // namespace

void for_each_sentence(std::string_view text, base::FunctionRef<void(Span sentence)> take) {
  Splitter(text, take).split();
}

std::vector<Span> sentences(std::string_view text) {
  std::vector<Span> found;
  for_each_sentence(text, [&found](Span sentence) { found.push_back(sentence); });
  return found;
}

}  // namespace incipit::text
