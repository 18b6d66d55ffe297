// SPDX-License-Identifier: Apache-2.0
#include "compress/pieces.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compress/fence.h"
#include "compress/json_scan.h"
#include "compress/line_kinds.h"
#include "text/ascii.h"

namespace incipit::compress {
namespace {

using text::is_ascii;
using text::is_space;
using text::line_end;
using text::trimmed;

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text), fences_(text), json_(text) {}

  std::vector<Piece> split() {
    pieces_.reserve(std::min(text_.size() / kPieceBytes + 2, kMostReserved));
    while (at_ < text_.size()) {
      const bool at_line_begin = at_ == 0 || text_[at_ - 1] == '\n';
      if (at_line_begin && (take_code() || take_json_line() || take_table() || take_log_line())) {
        continue;
      }
      take_prose();
    }
    flush_prose(text_.size());
    join_white_front();
    return std::move(pieces_);
  }

 private:
  // These take what begins with the line at at_ and move behind it, or return false.

  bool take_code() {
    const auto end = fences_.block_end(at_);
    if (end) take(at_, *end, PieceKind::kCode);
    return end.has_value();
  }

  /// JSON that fills whole lines.
  bool take_json_line() {
    const std::size_t begin = text_.find_first_not_of(" \t", at_);
    if (begin == std::string_view::npos || (text_[begin] != '{' && text_[begin] != '[')) {
      return false;
    }
    if (!json_.scan(begin)) return false;
    const std::size_t end = json_.nodes().front().end;
    if (!is_space_to_line_end(end)) return false;
    take(at_, end, PieceKind::kJson);
    return true;
  }

  bool take_table() {
    const std::size_t end = table_end(text_, at_);
    if (end == at_) return false;
    take(at_, end, PieceKind::kTable);
    return true;
  }

  bool take_log_line() {
    const std::size_t end = line_end(text_, at_);
    if (!is_log_line(text_.substr(at_, end - at_))) return false;
    take(at_, end, PieceKind::kLog);
    return true;
  }

  /// The rest of a line of prose, or the front of it up to a JSON object (or list of objects) and
  /// that.
  void take_prose() {
    const std::size_t end = line_end(text_, at_);
    for (std::size_t from = at_; from < end; ++from) {
      while (from < end && text_[from] != '{' && text_[from] != '[') ++from;
      if (from == end || !may_be_inline_json(from) || !json_.scan(from)) continue;
      const std::size_t json_end = json_.nodes().front().end;
      if (is_grapheme_border(json_end)) return take(from, json_end, PieceKind::kJson);
    }
    at_ = end;
  }

  bool may_be_inline_json(std::size_t begin) const {
    const std::size_t next = text_.find_first_not_of(" \t\r\n", begin + 1);
    if (next == std::string_view::npos) return false;
    if (text_[next] != (text_[begin] == '{' ? '"' : '{')) return false;
    // What is in front may be a character that joins with the bracket.
    std::size_t front = begin;
    while (front > 0 && begin - front < 4) {
      if ((static_cast<unsigned char>(text_[--front]) & 0xC0) != 0x80) break;
    }
    return begin == 0 || text::grapheme_end(text_, front) == begin;
  }

  bool is_space_to_line_end(std::size_t from) const {
    while (from < text_.size() && text_[from] != '\n') {
      if (!is_space(text_[from])) return false;
      ++from;
    }
    return true;
  }

  /// `at` stands behind an ASCII character.
  bool is_grapheme_border(std::size_t at) const {
    return at == text_.size() || is_ascii(text_[at]) || text::grapheme_end(text_, at - 1) == at;
  }

  /// Adds a piece, the white space around it, and the prose that was in front of it.
  void take(std::size_t begin, std::size_t end, PieceKind kind) {
    if (trimmed(text_.substr(prose_begin_, begin - prose_begin_)).empty()) begin = prose_begin_;
    flush_prose(begin);
    while (end < text_.size() && is_space(text_[end]) && is_grapheme_border(end + 1)) {
      const bool at_line_begin = text_[end - 1] == '\n';
      // The indentation of a line belongs to that line.
      if (at_line_begin && !is_space_to_line_end(end)) break;
      end = at_line_begin ? line_end(text_, end) : end + 1;
    }
    pieces_.push_back({{begin, end}, kind});
    prose_begin_ = at_ = end;
  }

  void flush_prose(std::size_t end) {
    if (end == prose_begin_) return;
    const std::string_view prose = text_.substr(prose_begin_, end - prose_begin_);
    text::for_each_sentence(prose, [this](text::Span span) {
      pieces_.push_back(
          {{prose_begin_ + span.begin, prose_begin_ + span.end}, PieceKind::kSentence});
    });
    prose_begin_ = end;
  }

  /// White space at the front of the text belongs to the first piece.
  void join_white_front() {
    if (pieces_.size() < 2) return;
    const text::Span front = pieces_.front().span;
    if (!trimmed(text_.substr(front.begin, front.end - front.begin)).empty()) return;
    pieces_.erase(pieces_.begin());
    pieces_.front().span.begin = 0;
  }

  static constexpr std::size_t kPieceBytes = 64;  // about
  static constexpr std::size_t kMostReserved = 64;

  std::string_view text_;
  FenceFinder fences_;
  JsonScanner json_;
  std::vector<Piece> pieces_;
  std::size_t at_ = 0;
  std::size_t prose_begin_ = 0;  // prose from here to at_ is not yet in pieces_
};

}  // namespace

std::vector<Piece> pieces(std::string_view text) { return Splitter(text).split(); }

}  // namespace incipit::compress
