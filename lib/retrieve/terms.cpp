// SPDX-License-Identifier: Apache-2.0
#include "retrieve/terms.h"

#include <utf8proc.h>

#include "text/segmentation.h"
#include "text/utf8.h"

namespace incipit::retrieve {
namespace {

using text::Word;

/// FNV-1a over bytes in lower case, mixed at the end. Nothing is proved by a hash: two words of one
/// hash would rank as one word.
class TermHash {
 public:
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

  void add_code(char32_t code) noexcept { hash_ = (hash_ ^ code) * 0x100000001B3; }

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

}  // namespace

void for_each_term(std::string_view text, base::FunctionRef<void(std::uint64_t term)> take) {
  text::WordScanner scanner(text);
  text::Span before;   // the character in front
  bool alone = false;  // no pair holds it yet
  const auto finish = [&] {
    if (alone) take(term_of(before.of(text)));
    alone = false;
    before = {};
  };
  for (Word word; scanner.next(word);) {
    if (word.kind != Word::Kind::kCharacter) {
      finish();
      take(term_of(stem(word.span.of(text))));
      continue;
    }
    if (before.end != before.begin && before.end == word.span.begin) {
      take(term_of(text.substr(before.begin, word.span.end - before.begin)));
      alone = false;
    } else {
      finish();
      alone = true;
    }
    before = word.span;
  }
  finish();
}

std::vector<std::uint64_t> terms_of(std::string_view text) {
  constexpr std::size_t kTermBytes = 6;  // about
  std::vector<std::uint64_t> terms;
  terms.reserve(text.size() / kTermBytes + 1);
  for_each_term(text, [&terms](std::uint64_t term) { terms.push_back(term); });
  return terms;
}

}  // namespace incipit::retrieve
