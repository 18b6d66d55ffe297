// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_SEGMENTATION_H_
#define INCIPIT_TEXT_SEGMENTATION_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace incipit::text {

/// A part of a text, in bytes.
struct Span {
  std::size_t begin = 0, end = 0;

  constexpr std::string_view of(std::string_view text) const noexcept {
    return text.substr(begin, end - begin);
  }
  friend bool operator==(const Span&, const Span&) = default;
};

/// The end of the grapheme (UAX 29, extended) that begins at `at` < text.size(). A byte that is no
/// UTF-8 is one by itself.
std::size_t grapheme_end(std::string_view text, std::size_t at) noexcept;

/// Tiles `text` with sentences, none of them empty. White space behind a sentence belongs to it,
/// and so do empty lines; the indentation of a line belongs to that line. A line break always ends
/// a sentence; full stops of abbreviations, numbers, names and list items do not. No grapheme is
/// cut. O(length).
std::vector<Span> sentences(std::string_view text);
/// Calls `take` with one after the other.
void for_each_sentence(std::string_view text, base::FunctionRef<void(Span sentence)> take);

/// What words() and WordScanner find.
struct Word {
  enum class Kind : std::uint8_t {
    kLetters,    // a word; it may hold digits, but does not begin with one
    kNumber,     // begins with a digit: "3.14", "1,234", "2nd"
    kCharacter,  // one character, with its marks, of a script that is written without spaces
  };
  Span span = {};
  Kind kind = Kind::kLetters;
};

/// Finds one word after the other, after UAX 29: runs of letters, marks, digits and underscores,
/// apostrophes between letters and points between digits included. Characters of Han, Kana, Thai,
/// Lao, Khmer and Burmese are words by themselves.
class WordScanner {
 public:
  /// `text` must outlive the scanner, which begins at byte `at`: at a character outside of words,
  /// or the first one of a word.
  explicit WordScanner(std::string_view text, std::size_t at = 0) noexcept : text_(text), at_(at) {}

  /// False at the end of the text.
  bool next(Word& word) noexcept;

 private:
  std::string_view text_;
  std::size_t at_;
};

/// All words of `text`, in order.
std::vector<Word> words(std::string_view text);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_SEGMENTATION_H_
