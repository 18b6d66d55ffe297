// SPDX-License-Identifier: Apache-2.0
#include "text/segmentation.h"

#include <utf8proc.h>

#include <array>

#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::text {
namespace {

/// How a character takes part in words.
enum class Class : std::uint8_t { kOther, kLetter, kDigit, kMark, kAlone };

constexpr auto kAsciiClasses = [] {
  std::array<Class, 128> classes{};
  for (char c = 'a'; c <= 'z'; ++c) classes[static_cast<unsigned char>(c)] = Class::kLetter;
  for (char c = 'A'; c <= 'Z'; ++c) classes[static_cast<unsigned char>(c)] = Class::kLetter;
  for (char c = '0'; c <= '9'; ++c) classes[static_cast<unsigned char>(c)] = Class::kDigit;
  classes[static_cast<unsigned char>('_')] = Class::kLetter;
  return classes;
}();

struct Range {
  char32_t first, last;
};
/// Of the scripts that are written without spaces, outside Han: Thai and Lao, Burmese, Khmer,
/// Kana with the iteration marks in front, Bopomofo, Kana extensions, half-width Kana.
constexpr std::array<Range, 9> kUnspaced{{{0x0E00, 0x0EFF},
                                          {0x1000, 0x109F},
                                          {0x1780, 0x17FF},
                                          {0x3005, 0x3007},
                                          {0x3021, 0x30FF},
                                          {0x3100, 0x312F},
                                          {0x31A0, 0x31FF},
                                          {0xAA60, 0xAA7F},
                                          {0xFF66, 0xFF9D}}};

constexpr bool is_han(char32_t code) noexcept {
  return (code >= 0x4E00 && code <= 0x9FFF) || (code >= 0x3400 && code <= 0x4DBF) ||
         (code >= 0x20000 && code <= 0x3FFFF) || (code >= 0xF900 && code <= 0xFAFF);
}

constexpr bool is_unspaced(char32_t code) noexcept {
  for (const Range& range : kUnspaced) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

/// Full stops, commas, quotation marks and brackets of Chinese and Japanese: most of what stands
/// between their words, so that nothing has to be looked up.
constexpr bool is_cjk_mark(char32_t code) noexcept {
  return (code >= 0x3000 && code <= 0x3004) || (code >= 0x3008 && code <= 0x3020) ||
         (code >= 0xFF01 && code <= 0xFF0F) || (code >= 0xFF1A && code <= 0xFF20);
}

/// Of what is beyond ASCII.
Class class_of(const Utf8Unit& unit) noexcept {
  if (unit.kind != Utf8Unit::Kind::kCharacter) return Class::kOther;
  if (is_han(unit.code)) return Class::kAlone;
  if (is_cjk_mark(unit.code)) return Class::kOther;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(unit.code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_NL:
      return is_unspaced(unit.code) ? Class::kAlone : Class::kLetter;
    case UTF8PROC_CATEGORY_ND:
      return Class::kDigit;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return Class::kMark;
    case UTF8PROC_CATEGORY_CF:  // joiners, as Persian has within words
      return unit.code == 0x200C || unit.code == 0x200D ? Class::kMark : Class::kOther;
    default:
      return Class::kOther;
  }
}

struct Character {
  Class kind = Class::kOther;
  std::size_t end = 0;
  char32_t code = 0;
};

Character beyond_ascii(std::string_view text, std::size_t at) noexcept {
  const Utf8Unit unit = first_unit(text.substr(at));
  return {class_of(unit), at + unit.bytes, unit.code};
}

/// The character at `at` <= text.size(); kOther of no length at the end.
inline Character character_at(std::string_view text, std::size_t at) noexcept {
  if (at == text.size()) return {Class::kOther, at, 0};
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 128) return {kAsciiClasses[byte], at + 1, byte};
  return beyond_ascii(text, at);
}

/// Whether a sign between two characters of a word leaves them one word.
constexpr bool joins(char32_t sign, Class before, Class after) noexcept {
  if (sign == '\'' || sign == 0x2019) return before == Class::kLetter && after == Class::kLetter;
  return (sign == '.' || sign == ',') && before == Class::kDigit && after == Class::kDigit;
}

std::size_t end_of_marks(std::string_view text, std::size_t at) noexcept {
  for (Character next = character_at(text, at); next.kind == Class::kMark;
       next = character_at(text, at)) {
    at = next.end;
  }
  return at;
}

/// The end of the word of letters and digits whose first character is `last`.
std::size_t end_of_run(std::string_view text, Character last) noexcept {
  Class before = last.kind;
  std::size_t end = last.end;
  while (true) {
    for (; end < text.size() && is_ascii(text[end]); ++end) {
      const Class kind = kAsciiClasses[static_cast<unsigned char>(text[end])];
      if (kind == Class::kOther) break;
      before = kind;
    }
    const Character next = character_at(text, end);
    if (next.kind == Class::kLetter || next.kind == Class::kDigit) {
      before = next.kind;
      end = next.end;
    } else if (next.kind == Class::kMark) {
      end = next.end;
    } else {
      if (next.kind != Class::kOther || next.end == end) return end;
      const Character behind = character_at(text, next.end);
      if (!joins(next.code, before, behind.kind)) return end;
      before = behind.kind;
      end = behind.end;
    }
  }
}

}  // namespace

std::size_t grapheme_end(std::string_view text, std::size_t at) noexcept {
  const auto is_ascii = [&](std::size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  if (is_ascii(at) && (at + 1 == text.size() || is_ascii(at + 1))) {
    const bool pair = text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n';
    return at + (pair ? 2 : 1);
  }
  Utf8Unit unit = first_unit(text.substr(at));
  utf8proc_int32_t state = 0;
  while (unit.kind == Utf8Unit::Kind::kCharacter) {
    at += unit.bytes;
    if (at == text.size()) return at;
    const Utf8Unit next = first_unit(text.substr(at));
    if (next.kind != Utf8Unit::Kind::kCharacter ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(unit.code),
                                         static_cast<utf8proc_int32_t>(next.code), &state) != 0) {
      return at;
    }
    unit = next;
  }
  return at + unit.bytes;
}

bool WordScanner::next(Word& word) noexcept {
  while (at_ < text_.size()) {
    const Character first = character_at(text_, at_);
    const std::size_t begin = at_;
    at_ = first.end;
    if (first.kind == Class::kOther || first.kind == Class::kMark) continue;
    if (first.kind == Class::kAlone) {
      at_ = end_of_marks(text_, at_);
      word = {{begin, at_}, Word::Kind::kCharacter};
    } else {
      at_ = end_of_run(text_, first);
      word = {{begin, at_},
              first.kind == Class::kDigit ? Word::Kind::kNumber : Word::Kind::kLetters};
    }
    return true;
  }
  return false;
}

std::vector<Word> words(std::string_view text) {
  std::vector<Word> found;
  WordScanner scanner(text);
  for (Word word; scanner.next(word);) found.push_back(word);
  return found;
}

}  // namespace incipit::text
