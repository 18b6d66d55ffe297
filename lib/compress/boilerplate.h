// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_COMPRESS_BOILERPLATE_H_
#define INCIPIT_COMPRESS_BOILERPLATE_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/pieces.h"

namespace incipit::compress {

struct Removal {
  text::Span span = {};          // of the text that was given
  std::string_view reason = {};  // "greeting", "closing", ...: lives as long as the program
};

/// A text without what says nothing.
struct Cleaned {
  std::string text = {};
  std::vector<Removal> removed = {};  // disjoint and in order; what is left is `text`
};

/// Removes greetings, closing formulas, offers of further help, "As an AI language model,",
/// signatures behind "-- ", repeated separator lines and empty lines, in English and Chinese. What
/// is in doubt stays. Never touches code, JSON, tables, quotes or a digit; a text of which nothing
/// would be left is returned as it is. O(length).
Cleaned remove_boilerplate(std::string_view text);

/// What that would remove of a text whose pieces() are known, and the text without that.
std::vector<Removal> boilerplate(std::string_view text, std::span<const Piece> pieces);
std::string without(std::string_view text, std::span<const Removal> removed);

}  // namespace incipit::compress

#endif  // INCIPIT_COMPRESS_BOILERPLATE_H_
