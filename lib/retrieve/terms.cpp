// SPDX-License-Identifier: Apache-2.0
#include "retrieve/terms.h"

#include <utf8proc.h>

#include <array>

#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::retrieve {
namespace {

using text::Word;

/// FNV-1a over bytes in lower case, mixed at the end. Nothing is proved by a hash: two words of one
/// hash would rank as one word.
class TermHash {
 public:
  /// Of whole characters.
  void add(std::string_view word) noexcept {
    for (std::size_t at = 0; at < word.size();) {
      const auto byte = static_cast<unsigned char>(word[at]);
      if (byte < 0x80) {
        add_code(byte >= 'A' && byte <= 'Z' ? byte + 32u : byte);
        ++at;
      } else {
        const text::Utf8Unit unit = text::first_unit(word.substr(at));
        add_code(folded(unit.code));
        at += unit.bytes;
      }
    }
  }

  void add_code(char32_t code) noexcept { hash_ = (hash_ ^ code) * 0x100000001B3; }

  std::uint64_t value() const noexcept {
    std::uint64_t mixed = hash_ ^ (hash_ >> 32);
    mixed *= 0x9E3779B97F4A7C15;
    return mixed ^ (mixed >> 29);
  }

 private:
  static char32_t folded(char32_t code) noexcept {
    constexpr char32_t kFirstHan = 0x4E00, kLastHan = 0x9FFF;  // without cases, and most of all
    constexpr char32_t kFirstFullWidth = 0xFF01, kLastFullWidth = 0xFF5E;
    if (code >= kFirstHan && code <= kLastHan) return code;
    if (code >= kFirstFullWidth && code <= kLastFullWidth) code -= kFirstFullWidth - U'!';
    if (code == 0x2019) return U'\'';
    return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code)));
  }

  std::uint64_t hash_ = 0xCBF29CE484222325;
};

/// Without a possessive 's.
std::string_view stem(std::string_view word) noexcept {
  for (const std::string_view mark : {"'s", "\xE2\x80\x99s", "'S", "\xE2\x80\x99S"}) {
    if (word.size() > mark.size() && word.ends_with(mark)) {
      return word.substr(0, word.size() - mark.size());
    }
  }
  return word;
}

std::uint64_t term_of(std::string_view word) noexcept {
  TermHash hash;
  hash.add(word);
  return hash.value();
}

/// What an ASCII letter, digit or underscore is in a term; 0 for any other byte.
constexpr auto kTermBytes = [] {
  std::array<unsigned char, 256> bytes{};
  for (std::size_t byte = 0; byte < 128; ++byte) {
    const auto c = static_cast<char>(byte);
    if (text::is_word(c)) bytes[byte] = static_cast<unsigned char>(text::to_lower(c));
  }
  return bytes;
}();

unsigned char term_byte(std::string_view text, std::size_t at) noexcept {
  return at < text.size() ? kTermBytes[static_cast<unsigned char>(text[at])] : 0;
}

/// Whether a word that has ASCII letters, digits and underscores up to `end` > 0 surely ends there.
bool ends_word(std::string_view text, std::size_t end) noexcept {
  if (end == text.size()) return true;
  const char next = text[end];
  if (next == '.' || next == ',') return !text::is_digit(text[end - 1]);
  return text::is_ascii(next) && next != '\'';
}

template <class Take, class See>
class TermMaker {
 public:
  TermMaker(std::string_view text, const Take& take, const See& see)
      : text_(text), take_(take), see_(see) {}

  void run() {
    for (std::size_t at = 0; at < text_.size();) {
      if (term_byte(text_, at) != 0) {
        at = ascii_word(at);
      } else if (text::is_ascii(text_[at])) {
        ++at;
      } else {
        at = any_word(at);
      }
    }
    finish();
  }

 private:
  /// Most words, at one glance. Returns the end of the word.
  std::size_t ascii_word(std::size_t begin) {
    TermHash hash;
    std::size_t end = begin;
    for (unsigned char byte = 0; (byte = term_byte(text_, end)) != 0; ++end) hash.add_code(byte);
    if (!ends_word(text_, end)) return any_word(begin);
    finish();
    const bool is_number = text::is_digit(text_[begin]);
    see_(Word{{begin, end}, is_number ? Word::Kind::kNumber : Word::Kind::kLetters});
    take_(hash.value());
    return end;
  }

  /// The first word from `at` on. Returns its end.
  std::size_t any_word(std::size_t at) {
    Word word;
    if (!text::WordScanner(text_, at).next(word)) return text_.size();
    see_(word);
    if (word.kind != Word::Kind::kCharacter) {
      finish();
      take_(term_of(stem(word.span.of(text_))));
      return word.span.end;
    }
    if (before_.end != before_.begin && before_.end == word.span.begin) {
      take_(term_of(text_.substr(before_.begin, word.span.end - before_.begin)));
      alone_ = false;
    } else {
      finish();
      alone_ = true;
    }
    before_ = word.span;
    return word.span.end;
  }

  /// What is in front of here has no neighbour behind.
  void finish() {
    if (alone_) take_(term_of(before_.of(text_)));
    alone_ = false;
    before_ = {};
  }

  std::string_view text_;
  const Take& take_;
  const See& see_;
  text::Span before_;   // the character in front
  bool alone_ = false;  // no pair holds it yet
};

template <class Take, class See>
void make_terms(std::string_view text, const Take& take, const See& see) {
  TermMaker<Take, See>(text, take, see).run();
}

constexpr auto kSeeNothing = [](const Word&) {};

}  // namespace

void for_each_term(std::string_view text, base::FunctionRef<void(std::uint64_t term)> take) {
  make_terms(text, take, kSeeNothing);
}

void for_each_term(std::string_view text, base::FunctionRef<void(std::uint64_t term)> take,
                   base::FunctionRef<void(const text::Word& word)> see) {
  make_terms(text, take, see);
}

std::vector<std::uint64_t> terms_of(std::string_view text) {
  constexpr std::size_t kBytesPerTerm = 6;  // about
  std::vector<std::uint64_t> terms;
  terms.reserve(text.size() / kBytesPerTerm + 1);
  const auto take = [&terms](std::uint64_t term) { terms.push_back(term); };
  make_terms(text, take, kSeeNothing);
  return terms;
}

}  // namespace incipit::retrieve
