// SPDX-License-Identifier: Apache-2.0
#include "compress/boilerplate.h"

#include <algorithm>

#include "compress/boilerplate_phrases.h"
#include "compress/line_kinds.h"
#include "text/ascii.h"
#include "text/utf8.h"

namespace incipit::compress {
namespace {

using text::is_ascii;
using text::is_blank;
using text::is_digit;
using text::is_letter;
using text::is_space;
using text::line_end;
using text::to_lower;
using text::trimmed;

constexpr std::size_t kLongestPhrase = 120;  // bytes, with punctuation

/// A sentence as the tables of phrases hold them. Empty for one with quotes, digits or brackets.
std::string plain_words(std::string_view sentence) {
  std::string words;
  for (std::size_t at = 0; at < sentence.size();) {
    const char c = sentence[at];
    if (is_ascii(c)) {
      ++at;
      if (is_letter(c)) {
        words += to_lower(c);
      } else if (is_space(c)) {
        if (!words.empty() && words.back() != ' ') words += ' ';
      } else if (std::string_view(".,!?:;'~-").find(c) == std::string_view::npos) {
        return {};
      }
      continue;
    }
    const text::Utf8Unit unit = text::first_unit(sentence.substr(at));
    if (unit.kind != text::Utf8Unit::Kind::kCharacter) return {};
    constexpr std::u32string_view kMarks = U"，。！？；：～、’…";
    if (kMarks.find(unit.code) == std::u32string_view::npos) {
      words.append(sentence.substr(at, unit.bytes));
    }
    at += unit.bytes;
  }
  while (!words.empty() && words.back() == ' ') words.pop_back();
  return words;
}

/// Behind the comma of an opening that says nothing; 0: there is none.
std::size_t opening_size(std::string_view sentence) {
  constexpr std::string_view kWideComma = "，";
  const std::string_view front = sentence.substr(0, kLongestPhrase);
  const std::size_t narrow = front.find(','), wide = front.find(kWideComma);
  const std::size_t comma = std::min(narrow, wide);
  if (comma == std::string_view::npos) return 0;
  const std::string words = plain_words(front.substr(0, comma));
  if (std::find(kOpenings.begin(), kOpenings.end(), words) == kOpenings.end()) return 0;
  std::size_t size = comma + (comma == narrow ? 1 : kWideComma.size());
  while (size < sentence.size() && is_blank(sentence[size])) ++size;
  return trimmed(sentence.substr(size)).empty() ? 0 : size;
}

class Cleaner {
 public:
  Cleaner(std::string_view text, std::span<const Piece> pieces) : text_(text), pieces_(pieces) {}

  Cleaned clean() {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const text::Span span = pieces_[i].span;
      if (begins_in_quote(span) || pieces_[i].kind != PieceKind::kSentence) {
        separator_ = {};
      } else if (is_signature(i)) {
        remove(span.begin, text_.size(), kSignature);
        break;
      } else {
        look_at(span);
      }
    }
    return result();
  }

 private:
  std::string_view of(text::Span span) const {
    return text_.substr(span.begin, span.end - span.begin);
  }

  void look_at(text::Span span) {
    const std::string_view sentence = of(span);
    const std::string_view shown = trimmed(sentence);
    if (is_separator(shown)) {
      const bool repeats = shown == separator_;
      separator_ = shown;
      if (repeats) remove(span.begin, span.end, kSeparator);
      return;
    }
    if (!shown.empty()) separator_ = {};
    if (!shown.empty() && shown.size() <= kLongestPhrase) {
      const std::string words = plain_words(shown);
      const auto phrase = std::find_if(kWholeSentences.begin(), kWholeSentences.end(),
                                       [&](const Phrase& entry) { return entry.text == words; });
      if (phrase != kWholeSentences.end()) return remove(span.begin, span.end, phrase->reason);
    }
    if (const std::size_t size = opening_size(sentence)) {
      return remove(span.begin, span.begin + size, kDisclaimer);
    }
    remove_empty_lines(span);
  }

  /// Whether a piece stands between quotation marks or on a line that quotes somebody. Is told all
  /// pieces in order.
  bool begins_in_quote(text::Span span) {
    const std::string_view piece = of(span);
    if (span.begin == 0 || text_[span.begin - 1] == '\n') {
      const std::size_t first = piece.find_first_not_of(" \t");
      on_quoting_line_ = first < piece.size() && piece[first] == '>';
    }
    const bool begins_quoted = on_quoting_line_ || in_quote_;
    for (const char c : piece) in_quote_ = in_quote_ != (c == '"');
    for (const std::string_view mark : {"“", "「", "『", "《"}) {
      if (piece.find(mark) != std::string_view::npos) in_quote_ = true;
    }
    for (const std::string_view mark : {"”", "」", "』", "》"}) {
      if (piece.find(mark) != std::string_view::npos) in_quote_ = false;
    }
    const std::size_t white = piece.find_last_not_of(" \t\r\n") + 1;
    const bool ends_paragraph =
        std::count(piece.begin() + static_cast<std::ptrdiff_t>(white), piece.end(), '\n') > 1;
    in_quote_ = in_quote_ && !ends_paragraph;
    return begins_quoted;
  }

  /// "-- " on a line of its own (RFC 3676, section 4.3) and a few short lines without digits
  /// behind.
  bool is_signature(std::size_t piece) const {
    constexpr std::size_t kMostBytes = 300;
    const text::Span span = pieces_[piece].span;
    const std::string_view sentence = of(span);
    const std::string_view line = sentence.substr(0, sentence.find('\n'));
    if ((line != "-- " && line != "-- \r") || text_.size() - span.begin > kMostBytes) return false;
    const std::string_view rest = text_.substr(span.begin);
    return std::none_of(rest.begin(), rest.end(), is_digit) &&
           std::all_of(pieces_.begin() + static_cast<std::ptrdiff_t>(piece), pieces_.end(),
                       [](const Piece& part) { return part.kind == PieceKind::kSentence; });
  }

  /// More than one empty line behind a sentence.
  void remove_empty_lines(text::Span span) {
    std::size_t white = span.end;
    while (white > span.begin && is_space(text_[white - 1])) --white;
    const std::size_t first = line_end(text_, white);
    const std::size_t second = first < span.end ? line_end(text_, first) : span.end;
    if (second < span.end) remove(second, span.end, kEmptyLines);
  }

  void remove(std::size_t begin, std::size_t end, std::string_view reason) {
    removed_.push_back({{begin, end}, reason});
  }

  Cleaned result() {
    Cleaned cleaned;
    std::size_t copied = 0;
    for (const Removal& removal : removed_) {
      cleaned.text.append(text_.substr(copied, removal.span.begin - copied));
      copied = removal.span.end;
    }
    cleaned.text.append(text_.substr(copied));
    if (trimmed(cleaned.text).empty()) return {std::string(text_), {}};
    cleaned.removed = std::move(removed_);
    return cleaned;
  }

  std::string_view text_;
  std::span<const Piece> pieces_;
  std::string_view separator_;  // the line just seen, if it was one
  bool in_quote_ = false, on_quoting_line_ = false;
  std::vector<Removal> removed_;
};

}  // namespace

Cleaned remove_boilerplate(std::string_view text) { return remove_boilerplate(text, pieces(text)); }

Cleaned remove_boilerplate(std::string_view text, std::span<const Piece> pieces) {
  return Cleaner(text, pieces).clean();
}

}  // namespace incipit::compress
