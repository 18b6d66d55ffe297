// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_VOCABULARY_H_
#define INCIPIT_TEXT_VOCABULARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace incipit::text {

/// Tokens as bytes, in both directions.
class Vocabulary {
 public:
  /// `seed` scatters the hash table; where it depends on the whole vocabulary, no file can make
  /// its tokens collide. Throws Error{kModelUnreadable} where the spec's tokens are inconsistent.
  Vocabulary(const TokenizerSpec& spec, std::uint64_t seed);

  std::size_t size() const noexcept { return ends_.size(); }
  bool contains(TokenId id) const noexcept {
    return id >= 0 && static_cast<std::size_t>(id) < size();
  }
  /// What a token adds to a decoded text: nothing for control and unused tokens.
  std::string_view bytes_of(TokenId id) const noexcept;
  /// The normal token with these bytes; -1: none.
  TokenId find(std::string_view bytes) const noexcept;

 private:
  void insert(TokenId id);
  std::size_t slot_of(std::string_view bytes) const noexcept;

  std::string bytes_;              // of all tokens
  std::vector<std::size_t> ends_;  // [tokens] in bytes_
  std::vector<TokenId> slots_;  // [power of two] normal tokens by hash, open addressing; -1: free
  std::uint64_t seed_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_VOCABULARY_H_
