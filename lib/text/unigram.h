// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_UNIGRAM_H_
#define INCIPIT_TEXT_UNIGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge_table.h"
#include "text/vocabulary.h"

namespace incipit::text {

/// The unigram language model of SentencePiece (Kudo 2018, "Subword Regularization", section 3.2):
/// of all ways to cut a text into tokens, the one whose scores sum up highest. Immutable.
class Unigram {
 public:
  /// Throws Error{kModelUnreadable} without an unknown token or scores that are numbers. The
  /// vocabulary must outlive it.
  Unigram(const Vocabulary& vocabulary, const TokenizerSpec& spec, std::uint64_t seed);

  /// The memory of one caller.
  class Scratch {
    friend class Unigram;
    /// The best way to a place in the text.
    struct Node {
      double score = 0;
      std::size_t begin = 0;  // of the last token
      TokenId id = -1;        // of the last token; -1: no way leads here
    };
    struct Piece {
      std::size_t begin = 0, end = 0;
      TokenId id = -1;
    };
    std::vector<Node> nodes_;
    std::vector<Piece> pieces_;
  };

  /// Appends the tokens of one pre-token, which must be valid UTF-8. Adjacent unknown characters
  /// are one unknown token, or a token for each byte where the vocabulary has them.
  /// O(length x longest token).
  void encode(std::string_view pre_token, Scratch& scratch, std::vector<TokenId>& out) const;
  /// Appends the token of a single byte, or the unknown token.
  void encode_byte(char byte, std::vector<TokenId>& out) const;

 private:
  void build_trie(std::vector<TokenId> ids, std::uint64_t seed);
  void reach_from(std::string_view text, std::size_t base, std::size_t at, std::size_t& reach,
                  Scratch& scratch) const;
  void emit(std::string_view text, std::size_t base, std::size_t end, Scratch& scratch,
            std::vector<TokenId>& out) const;
  void emit_unknown(std::string_view text, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;  // [tokens that have one]
  const TokenId unknown_;
  double unknown_score_ = 0;
  MergeTable edges_;                 // (node, byte) to node; 0 is the root
  std::vector<TokenId> token_here_;  // [nodes] -1: none ends here
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_UNIGRAM_H_
