// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_PIECES_H_
#define INCIPIT_COMPRESS_PIECES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/segmentation.h"

namespace incipit::compress {

enum class PieceKind : std::uint8_t {
  kSentence,  // of prose; a heading, a list item or another line also counts as one
  kCode,      // a whole fenced block of CommonMark, its fences included
  kJson,      // one JSON object or array that parses
  kTable,     // a whole Markdown or ASCII table
  kLog,       // one line that begins as lines of a log do
};

/// A part of a text that is kept or dropped as a whole.
struct Piece {
  text::Span span = {};
  PieceKind kind = PieceKind::kSentence;
};

/// Tiles `text` with pieces, none of them empty. White space belongs to the piece in front of it.
/// No grapheme, code block, JSON value or table is ever cut. O(length); bytes that are no UTF-8 are
/// kept.
std::vector<Piece> pieces(std::string_view text);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_PIECES_H_
