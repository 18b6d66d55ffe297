// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TOKENIZER_H_
#define INCIPIT_TEXT_TOKENIZER_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/sampling.h"

namespace incipit::text {

/// How a text is cut before byte-pair merging; the names are those of GGUF's tokenizer.ggml.pre.
enum class PreTokenizer { kGpt2, kSmolLm, kLlama3, kQwen2 };

enum class TokenKind : std::uint8_t {
  kNormal,
  kControl,      // a special token: recognised in raw text, left out of decoded text
  kUserDefined,  // recognised in raw text, kept in decoded text
  kUnused,
};

/// What a model file says about its byte-level BPE tokenizer.
struct TokenizerSpec {
  std::vector<std::string> tokens = {};  // by id; normal ones in GPT-2's byte alphabet
  std::vector<TokenKind> kinds = {};     // [tokens]
  std::vector<std::string> merges = {};  // "left right", by rank
  PreTokenizer pre = PreTokenizer::kGpt2;
  bool normalize_nfc = false;
  bool ignore_merges = false;      // a pre-token that is a token as a whole is not merged
  bool add_bos = false;            // raw text gets a BOS in front
  TokenId bos = -1;                // -1: none
  std::vector<TokenId> ends = {};  // tokens that end a generated text
};

/// A stretch of a rendered prompt. Special tokens are recognised in control pieces only.
struct TextPiece {
  std::string text = {};
  bool control = false;
};

/// Byte-level BPE. Immutable, so all members may be called concurrently.
class Tokenizer {
 public:
  /// Throws Error{kModelUnreadable} where the spec is inconsistent.
  explicit Tokenizer(TokenizerSpec spec);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  std::size_t vocabulary() const noexcept;
  TokenId bos() const noexcept;  // -1: none
  bool is_end(TokenId id) const noexcept;
  /// Hash of everything that decides which ids a text gets.
  std::string fingerprint() const;

  /// A raw text as Hugging Face's default call encodes it: special tokens recognised, BOS as
  /// configured. Bytes that are no UTF-8 (which Hugging Face never sees) are encoded one by one,
  /// the text on both sides of them as if it stood alone. A byte that the vocabulary has no token
  /// for is left out, as there. O(n log n) for the longest word, else O(length). Throws
  /// Error{kInvalidArgument} above 1 GiB, as all of these do.
  std::vector<TokenId> encode(std::string_view text) const;
  /// A rendered conversation: the pieces are one text, tokenized across their borders. No BOS is
  /// added. A special token must stand within one control piece.
  std::vector<TokenId> encode(std::span<const TextPiece> pieces) const;

  /// The longest front of `text` whose tokens no continuation of the text can change.
  struct StablePrefix {
    std::size_t bytes = 0;
    std::vector<TokenId> ids = {};  // BOS included
  };
  StablePrefix encode_stable(std::string_view text) const;
  /// The rest of a text behind a stable prefix: encode(a + b) == stable(a).ids ++
  /// encode_rest(what follows stable(a).bytes in a + b).
  std::vector<TokenId> encode_rest(std::string_view rest) const;

  /// Bytes of one token; empty for control and unused tokens. Throws Error{kInvalidArgument} for an
  /// unknown id.
  std::string_view bytes_of(TokenId id) const;
  /// Joined bytes of tokens, invalid UTF-8 replaced by U+FFFD.
  std::string decode(std::span<const TokenId> ids) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TOKENIZER_H_
