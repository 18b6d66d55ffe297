// SPDX-License-Identifier: Apache-2.0
#include "compress/boilerplate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "compress/boilerplate_phrases.h"
#include "compress/chains.h"
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

/// A sentence, or the front of it, as the tables of phrases hold them: letters in lower case, and
/// one space between words. Empty for one with quotes, digits or brackets.
class PlainWords {
 public:
  /// At most the first `most` bytes of what `sentence` is.
  explicit PlainWords(std::string_view sentence, std::size_t most = kLongestPhrase) {
    for (std::size_t at = 0; at < sentence.size() && size_ < most;) {
      const std::size_t bytes =
          is_ascii(sentence[at]) ? take_ascii(sentence[at]) : take_other(sentence.substr(at));
      if (bytes == 0) {
        size_ = 0;
        return;
      }
      at += bytes;
    }
    size_ = std::min(size_, most);
    while (size_ > 0 && words_[size_ - 1] == ' ') --size_;
  }

  std::string_view text() const noexcept { return {words_.data(), size_}; }

 private:
  // These return how many bytes they took; 0: no phrase has such.

  std::size_t take_ascii(char c) {
    if (is_letter(c)) {
      words_[size_++] = to_lower(c);
    } else if (is_space(c)) {
      if (size_ > 0 && words_[size_ - 1] != ' ') words_[size_++] = ' ';
    } else if (std::string_view(".,!?:;'~-").find(c) == std::string_view::npos) {
      return 0;
    }
    return 1;
  }

  std::size_t take_other(std::string_view rest) {
    const text::Utf8Unit unit = text::first_unit(rest);
    if (unit.kind != text::Utf8Unit::Kind::kCharacter) return 0;
    constexpr std::u32string_view kMarks = U"，。！？；：～、’…";
    if (kMarks.find(unit.code) == std::u32string_view::npos) {
      for (const char c : rest.substr(0, unit.bytes)) words_[size_++] = c;
    }
    return unit.bytes;
  }

  static constexpr std::size_t kLongestCharacter = 4;
  std::array<char, kLongestPhrase + kLongestCharacter> words_;
  std::size_t size_ = 0;
};

// Phrases by their front: that of most sentences is none of theirs.

constexpr std::size_t kFrontBytes = 3;

/// Of what PlainWords makes, up to kFrontBytes.
constexpr std::size_t hash_of_front(std::string_view front) {
  front = trimmed(front.substr(0, kFrontBytes));
  std::size_t hash = 0;
  for (const char c : front) hash = hash * 37 + static_cast<unsigned char>(c);
  return hash;
}
constexpr auto kSentenceChains = chains_of<1024>(
    kWholeSentences, [](const Phrase& phrase) { return hash_of_front(phrase.text); });
constexpr auto kOpeningChains = chains_of<1024>(kOpenings, hash_of_front);

/// Behind the comma of an opening that says nothing; 0: there is none.
std::size_t opening_size(std::string_view sentence) {
  constexpr std::string_view kWideComma = "，";
  const std::string_view front = sentence.substr(0, kLongestPhrase);
  const std::size_t narrow = front.find(','), wide = front.find(kWideComma);
  const std::size_t comma = std::min(narrow, wide);
  if (comma == std::string_view::npos) return 0;
  const PlainWords words(front.substr(0, comma));
  if (std::find(kOpenings.begin(), kOpenings.end(), words.text()) == kOpenings.end()) return 0;
  std::size_t size = comma + (comma == narrow ? 1 : kWideComma.size());
  while (size < sentence.size() && is_blank(sentence[size])) ++size;
  return trimmed(sentence.substr(size)).empty() ? 0 : size;
}

/// Why a sentence says nothing; empty: it does.
std::string_view reason_against(std::string_view sentence, std::size_t front) {
  if (!kSentenceChains.has(front) || sentence.size() > kLongestPhrase) return {};
  const PlainWords words(sentence);
  std::string_view reason;
  kSentenceChains.for_each(front, [&](std::size_t i) {
    if (kWholeSentences[i].text == words.text()) reason = kWholeSentences[i].reason;
  });
  return reason;
}

/// Bytes that quotation marks begin with.
constexpr auto kMayQuote = [] {
  std::array<bool, 256> may{};
  for (const unsigned byte : {0x22u, 0xE2u, 0xE3u}) may[byte] = true;
  return may;
}();

class Cleaner {
 public:
  Cleaner(std::string_view text, std::span<const Piece> pieces) : text_(text), pieces_(pieces) {}

  std::vector<Removal> find() {
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
    if (!removed_.empty() && trimmed(without(text_, removed_)).empty()) return {};
    return std::move(removed_);
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
    const std::size_t front = hash_of_front(PlainWords(shown, kFrontBytes).text());
    if (const std::string_view reason = reason_against(shown, front); !reason.empty()) {
      return remove(span.begin, span.end, reason);
    }
    const std::size_t size = kOpeningChains.has(front) ? opening_size(sentence) : 0;
    if (size > 0) return remove(span.begin, span.begin + size, kDisclaimer);
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
    bool opens = false, closes = false;
    for (std::size_t at = 0; at < piece.size(); ++at) {
      if (!kMayQuote[static_cast<unsigned char>(piece[at])]) continue;
      if (piece[at] == '"') in_quote_ = !in_quote_;
      const std::string_view mark = piece.substr(at, 3);
      if (mark.size() < 3 || mark[1] != '\x80') continue;
      if (mark == "“" || mark == "「" || mark == "『" || mark == "《") opens = true;
      if (mark == "”" || mark == "」" || mark == "』" || mark == "》") closes = true;
    }
    in_quote_ = (in_quote_ || opens) && !closes;
    if (!in_quote_) return begins_quoted;
    const std::size_t white = piece.find_last_not_of(" \t\r\n") + 1;
    const bool ends_paragraph =
        std::count(piece.begin() + static_cast<std::ptrdiff_t>(white), piece.end(), '\n') > 1;
    in_quote_ = !ends_paragraph;
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

  std::string_view text_;
  std::span<const Piece> pieces_;
  std::string_view separator_;  // the line just seen, if it was one
  bool in_quote_ = false, on_quoting_line_ = false;
  std::vector<Removal> removed_;
};

}  // namespace

std::vector<Removal> boilerplate(std::string_view text, std::span<const Piece> pieces) {
  return Cleaner(text, pieces).find();
}

std::string without(std::string_view text, std::span<const Removal> removed) {
  std::string left;
  std::size_t copied = 0;
  for (const Removal& removal : removed) {
    left.append(text.substr(copied, removal.span.begin - copied));
    copied = removal.span.end;
  }
  return left.append(text.substr(copied));
}

Cleaned remove_boilerplate(std::string_view text) {
  std::vector<Removal> removed = boilerplate(text, pieces(text));
  return {without(text, removed), std::move(removed)};
}

}  // namespace incipit::compress
