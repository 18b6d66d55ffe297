// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_VOCABULARY_H_
#define INCIPIT_TEXT_VOCABULARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace incipit::text {

/// The byte that a token like "<0x0A>" stands for. In capitals only, as those who fall back to
/// bytes write them; nullopt for all else.
std::optional<char> byte_of_token(std::string_view text);

/// Tokens as bytes, in both directions.
class Vocabulary {
 public:
  /// `seed` scatters the hash table; where it depends on the whole vocabulary, no file can make
  /// its tokens collide. Throws Error{kModelUnreadable} where the spec's tokens are inconsistent.
  Vocabulary(const TokenizerSpec& spec, std::uint64_t seed);

  std::size_t size() const noexcept { return bytes_.size(); }
  bool contains(TokenId id) const noexcept {
    return id >= 0 && static_cast<std::size_t>(id) < size();
  }
  /// What a token adds to a decoded text: nothing for control and unused tokens.
  std::string_view bytes_of(TokenId id) const noexcept { return bytes_.of(id); }
  /// What a token stands for in the text that is cut into tokens. It differs from bytes_of() where
  /// a vocabulary writes spaces otherwise ("▁").
  std::string_view text_of(TokenId id) const noexcept {
    return texts_.size() == 0 ? bytes_.of(id) : texts_.of(id);
  }
  /// The token with this text; -1: none. Control, byte and unused tokens are never found, nor are
  /// user-defined ones of a byte-level vocabulary.
  TokenId find(std::string_view text) const noexcept;
  /// The byte token for a byte; -1: none.
  TokenId find_byte(char byte) const noexcept {
    return byte_tokens_[static_cast<unsigned char>(byte)];
  }

 private:
  class Strings {
   public:
    void add(std::string_view text) {
      text_ += text;
      ends_.push_back(text_.size());
    }
    std::size_t size() const noexcept { return ends_.size(); }
    std::string_view of(TokenId id) const noexcept {
      const auto index = static_cast<std::size_t>(id);
      const std::size_t begin = index == 0 ? 0 : ends_[index - 1];
      return std::string_view(text_).substr(begin, ends_[index] - begin);
    }

   private:
    std::string text_;               // of all tokens
    std::vector<std::size_t> ends_;  // [tokens] in text_
  };

  void add_byte_level(const std::string& text, TokenKind kind);
  void add_characters(const std::string& text, TokenKind kind, const TokenizerSpec& spec);
  void insert(TokenId id);
  std::size_t slot_of(std::string_view text) const noexcept;

  Strings bytes_;
  Strings texts_;               // empty: the same as bytes_
  std::vector<TokenId> slots_;  // [power of two] tokens by hash, open addressing; -1: free
  std::array<TokenId, 256> byte_tokens_{};
  std::uint64_t seed_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_VOCABULARY_H_
