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

/// A token that is looked for in text before the text is cut.
struct SpecialToken {
  std::string text = {};
  TokenId id = -1;
  AddedTokenRule rule = {};
};

/// Special and user-defined tokens by their texts. Immutable.
class SpecialTokens {
 public:
  /// The longest. Bounds the work per byte of text.
  static constexpr std::size_t kMaxBytes = 1024;

  /// Throws Error{kModelUnreadable} where two tokens have one text, or one is too long.
  explicit SpecialTokens(std::vector<SpecialToken> tokens);

  bool empty() const noexcept { return tokens_.empty(); }

 private:
  friend class SpecialTokenSearch;
  struct Walk {
    const SpecialToken* token = nullptr;  // the longest one at the front; null: none
    bool undecided = false;               // the text ends inside a token
  };
  Walk walk(std::string_view text) const;

  std::vector<SpecialToken> tokens_;  // by text; no text is empty
  std::array<bool, 256> begins_{};    // with this byte one of them begins
  bool strip_left_ = false;           // one of them does
};

/// Finds special tokens in one text: the leftmost, and the longest of those that begin there. White
/// space that a token strips belongs to its match. One that must be a word of its own and is not is
/// passed over as a whole. O(length).
class SpecialTokenSearch {
 public:
  using Seam = Tokenizer::StablePrefix::SearchSeam;

  /// In an open text, one that may go on, the search stops where what follows could change it.
  /// `before` tells of what stands before the text. The text must outlive it.
  explicit SpecialTokenSearch(std::string_view text, bool open = false, const Seam& before = {})
      : text_(text), open_(open), before_(before), at_(before.passed) {}

  struct Match {
    std::size_t begin = 0;  // all between the last match and this is ordinary text
    std::size_t end = 0;
    TokenId id = -1;  // -1: none; begin == end
  };
  Match next(const SpecialTokens& tokens) { return next(tokens, text_.size()); }
  /// The next match that ends at or before `limit`, white space apart.
  Match next(const SpecialTokens& tokens, std::size_t limit);
  /// Goes on at `position` or where it is, whichever is later.
  void skip_to(std::size_t position);
  /// What another search has to know that begins at `position` of an open text, which this one has
  /// passed.
  Seam seam_at(std::size_t position) const;

 private:
  bool is_word_before(std::size_t position) const;
  bool is_word_beside(std::size_t begin, std::size_t end) const;
  bool is_undecided_behind(std::size_t end) const;
  bool is_undecided_in(const SpecialTokens& tokens, std::size_t begin, std::size_t end) const;
  Match stop(const SpecialTokens& tokens, std::size_t position) const;

  std::string_view text_;
  bool open_;
  Seam before_;
  std::size_t at_;                                           // where the search goes on
  std::size_t taken_ = 0;                                    // end of the last match
  std::vector<std::pair<std::size_t, std::size_t>> passed_;  // in an open text: tokens in words
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_SPECIAL_TOKENS_H_
