// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_MERGE_TABLE_H_
#define INCIPIT_TEXT_MERGE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "incipit/sampling.h"

namespace incipit::text {

/// 64 bits from a pair of numbers, well mixed.
constexpr std::uint64_t scatter(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 32)) * 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 29)) * 0xBF58476D1CE4E5B9;
  return bits ^ (bits >> 32);
}

constexpr std::uint64_t pair_of(TokenId left, TokenId right) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

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

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_MERGE_TABLE_H_
