// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_BPE_H_
#define INCIPIT_TEXT_BPE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace incipit::text {

/// Which pairs of tokens merge into which token, and which pair goes first.
class MergeTable {
 public:
  static constexpr std::uint32_t kNever = UINT32_MAX;

  struct Merge {
    std::uint32_t rank = kNever;  // lower goes first
    TokenId id = -1;
  };

  /// For `count` merges; `seed` as in Vocabulary.
  MergeTable(std::size_t count, std::uint64_t seed);

  void insert(TokenId left, TokenId right, Merge merge);  // replaces
  Merge find(TokenId left, TokenId right) const noexcept;

 private:
  struct Slot {
    std::uint64_t pair = 0;  // left and right
    Merge merge = {};        // rank kNever: the slot is free
  };
  std::size_t slot_of(std::uint64_t pair) const noexcept;

  std::vector<Slot> slots_;  // [power of two], open addressing
  std::uint64_t seed_;
};

/// Byte-pair encoding of pre-tokens. Immutable.
class Bpe {
 public:
  /// Throws Error{kModelUnreadable} for a merge that names no normal tokens. The vocabulary must
  /// outlive it.
  Bpe(const Vocabulary& vocabulary, std::span<const std::string> merges, bool ignore_merges,
      std::uint64_t seed);

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
  };

  /// Longest pre-token that encode() takes.
  static constexpr std::size_t kMaxBytes = UINT32_MAX - 1;

  /// Appends the tokens of one pre-token: of the pairs that merge, always the one of the lowest
  /// rank and of those the leftmost. O(n log n).
  void encode(std::string_view pre_token, Scratch& scratch, std::vector<TokenId>& out) const;
  /// Appends the token of a single byte, if there is one.
  void encode_byte(char byte, std::vector<TokenId>& out) const;

 private:
  void merge_all(Scratch& scratch) const;

  const Vocabulary& vocabulary_;
  bool ignore_merges_;
  MergeTable merges_;
  // A vocabulary may lack bytes that its training text lacked (SmolLM2's does); Hugging Face's
  // tokenizers leave such a byte out (-1 here), and so does this.
  std::array<TokenId, 256> bytes_{};
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_BPE_H_
