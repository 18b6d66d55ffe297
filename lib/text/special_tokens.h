// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_SPECIAL_TOKENS_H_
#define INCIPIT_TEXT_SPECIAL_TOKENS_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace incipit::text {

/// Finds special and user-defined tokens in raw text: the leftmost, and the longest of those that
/// begin there.
class SpecialTokens {
 public:
  /// Throws Error{kModelUnreadable} where two tokens have one text, or one is too long.
  explicit SpecialTokens(std::vector<std::pair<std::string, TokenId>> tokens);

  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    TokenId id = -1;  // -1: none; begin == end, and all before is ordinary text
  };
  /// The next match at or behind `from`.
  Match find(std::string_view text, std::size_t from) const;
  /// The same for a text that may go on: stops where its end decides what matches.
  Match find_in_open_text(std::string_view text, std::size_t from) const;

 private:
  struct Walk {
    std::size_t length = 0;  // of the longest token at the front
    TokenId id = -1;
    bool undecided = false;  // the text ends inside a token
  };
  Walk walk(std::string_view text) const;

  std::vector<std::pair<std::string, TokenId>> tokens_;  // by text; no text is empty
  std::array<bool, 256> begins_{};                       // with this byte one of them begins
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_SPECIAL_TOKENS_H_
