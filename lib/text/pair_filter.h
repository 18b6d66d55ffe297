// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_PAIR_FILTER_H_
#define INCIPIT_TEXT_PAIR_FILTER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "text/merge_table.h"

namespace incipit::text {

/// A set of pairs of characters that may claim a pair too many, never one too few.
class PairFilter {
 public:
  /// For about `count` pairs.
  explicit PairFilter(std::size_t count)
      : words_(std::bit_ceil(count / (kWordBits / kBitsPerPair) + kMinWords)) {}

  void insert(char32_t left, char32_t right) {
    const std::size_t bit = bit_of(left, right);
    words_[bit / kWordBits] |= std::uint64_t{1} << (bit % kWordBits);
  }
  bool may_hold(char32_t left, char32_t right) const noexcept {
    const std::size_t bit = bit_of(left, right);
    return (words_[bit / kWordBits] >> (bit % kWordBits) & 1) != 0;
  }

 private:
  static constexpr std::size_t kWordBits = 64, kMinWords = 16;
  static constexpr std::size_t kBitsPerPair = 8;  // one in eight that is absent looks present

  std::size_t bit_of(char32_t left, char32_t right) const noexcept {
    return scatter(std::uint64_t{left} << 32 | right) & (words_.size() * kWordBits - 1);
  }

  std::vector<std::uint64_t> words_;  // [power of two]
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_PAIR_FILTER_H_
