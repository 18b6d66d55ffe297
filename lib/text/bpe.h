// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_BPE_H_
#define INCIPIT_TEXT_BPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/merge_table.h"
#include "text/merges.h"
#include "text/pair_filter.h"
#include "text/vocabulary.h"

namespace incipit::text {

/// Byte-pair encoding of pre-tokens, from bytes (GPT-2) or from characters (SentencePiece).
/// Immutable.
class Bpe {
 public:
  /// Throws Error{kModelUnreadable} for a merge that names no tokens of the vocabulary, which must
  /// outlive it.
  Bpe(const Vocabulary& vocabulary, const TokenizerSpec& spec, std::uint64_t seed);

  /// The memory of one caller, reused from one pre-token to the next.
  class Scratch {
    friend class Bpe;
    struct Symbol {
      TokenId id;
      std::uint32_t previous;
      std::uint32_t next;
      MergeTable::Merge merge;  // with the next symbol
    };
    std::vector<Symbol> symbols_;
    std::vector<std::uint64_t> queue_;  // min-heap of rank << 32 | index
    bool unknown_ = false;              // an unknown character waits for its fellows
  };

  /// Longest pre-token that encode() takes.
  static constexpr std::size_t kMaxBytes = UINT32_MAX - 1;

  /// Appends the tokens of one pre-token: of the pairs that merge, always the one of the lowest
  /// rank and of those the leftmost. O(n log n). Of characters, the pre-token must be valid UTF-8.
  void encode(std::string_view pre_token, Scratch& scratch, std::vector<TokenId>& out) const;
  /// The same for a pre-token of characters that may go on. Returns the length of the front that is
  /// encoded: up to the last place that no merge can cross, whatever follows.
  std::size_t encode_open(std::string_view pre_token, Scratch& scratch,
                          std::vector<TokenId>& out) const;
  /// Appends the token of a single byte, if there is one; of characters, else the unknown token.
  void encode_byte(char byte, std::vector<TokenId>& out) const;

 private:
  void learn_pairs(std::span<const MergeRule> rules, const TokenizerSpec& spec);
  void encode_bytes(std::string_view pre_token, Scratch& scratch, std::vector<TokenId>& out) const;
  std::size_t encode_characters(std::string_view text, bool open, Scratch& scratch,
                                std::vector<TokenId>& out) const;
  void add_character(std::string_view character, Scratch& scratch) const;
  void add_symbol(TokenId id, Scratch& scratch) const;
  void flush(Scratch& scratch, std::vector<TokenId>& out) const;
  void merge_all(Scratch& scratch) const;

  const Vocabulary& vocabulary_;
  const bool of_characters_;
  const bool ignore_merges_;
  const bool fuse_unknown_;
  const TokenId unknown_;  // -1: none
  MergeTable merges_;
  // A vocabulary may lack bytes that its training text lacked (SmolLM2's does); Hugging Face's
  // tokenizers leave such a byte out (-1 here), and so does this.
  std::array<TokenId, 256> bytes_{};
  std::array<TokenId, 128> ascii_{};  // of characters

  // Merges join the last character of one token and the first of another. Between characters that
  // none joins, a text falls apart into pieces that are encoded one by one.
  PairFilter joined_;
  bool falls_apart_ = false;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_BPE_H_
