// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TOKENIZER_H_
#define INCIPIT_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/sampling.h"

namespace incipit::text {

/// How a text becomes tokens.
enum class TokenizerModel : std::uint8_t {
  kByteLevelBpe,  // GPT-2's: merges of bytes, within pre-tokens
  kCharacterBpe,  // SentencePiece's: merges of characters
  kUnigram,       // SentencePiece's: the best sum of scores
};

/// How a text is cut before byte-pair merging of bytes; the names are those of GGUF's
/// tokenizer.ggml.pre.
enum class PreTokenizer { kGpt2, kSmolLm, kLlama3, kQwen2, kBloom, kTekken };

enum class TokenKind : std::uint8_t {
  kNormal,
  kControl,      // a special token: recognised in raw text, left out of decoded text
  kUserDefined,  // recognised in raw text, kept in decoded text
  kUnused,
  kByte,  // "<0x0A>": a byte of a character that has no token; not of byte-level vocabularies
};

/// One step of what is done to a text before it is cut into tokens; the names are those of Hugging
/// Face's tokenizers.
struct NormalizerStep {
  enum class Kind : std::uint8_t {
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowerCase,
    kStripAccents,
    kStripLeft,         // white space
    kStripRight,        // white space
    kReplace,           // each `text` by `by`
    kReplaceSpaceRuns,  // each run of two spaces or more by `by`
    kPrepend,           // `by`, to a text that is not empty
    kPrependMissing,    // `by`, where the text does not begin with it
    kMarkWords,         // keeps the words between white space, each with `by` in front
  };
  Kind kind = Kind::kNfc;
  std::string text = {};
  std::string by = {};
};

/// What a token that is recognised in raw text does there besides, if anything.
struct AddedTokenRule {
  bool strip_left = false;   // takes the white space before it along
  bool strip_right = false;  // and that behind it
  bool whole_word = false;   // recognised only where no word character stands beside it
  bool normalized = false;   // looked for in the normalised text, after the others
};

/// What a model file says about its tokenizer.
struct TokenizerSpec {
  TokenizerModel model = TokenizerModel::kByteLevelBpe;
  std::vector<std::string> tokens = {};  // by id; normal byte-level ones in GPT-2's byte alphabet
  std::vector<TokenKind> kinds = {};     // [tokens]
  std::map<TokenId, AddedTokenRule> rules = {};  // of control and user-defined tokens that have one
  std::vector<std::string> merges = {};          // "left right", by rank
  std::vector<double> scores = {};  // of the first tokens; of unigram, or what merges follow from
  PreTokenizer pre = PreTokenizer::kGpt2;  // of byte-level BPE
  bool ignore_merges = false;              // a pre-token that is a token as a whole is not merged
  TokenId unknown = -1;                    // for what has no token, not of byte-level BPE; -1: none
  bool fuse_unknown = false;               // one for several in a row

  bool normalize_nfc = false;                   // before all other steps
  std::vector<NormalizerStep> normalizer = {};  // what `normalized` tokens are looked for in
  std::vector<NormalizerStep> spacing = {};     // after that, to the text between tokens
  bool spacing_at_begin_only = false;           // what comes in front comes only before a text
  std::string split_before = {};                // each of these begins a pre-token; empty: none
  std::string space = {};                       // what tokens write for a space; empty: a space
  bool strip_space = false;                     // a decoded text loses a space in front

  bool add_bos = false;            // raw text gets a BOS in front
  bool add_eos = false;            // and an EOS behind it
  TokenId bos = -1;                // -1: none
  TokenId eos = -1;                // -1: none
  std::vector<TokenId> ends = {};  // tokens that end a generated text
};

/// A stretch of a rendered prompt. Control tokens are recognised in control pieces only. So are
/// user-defined ones of byte-level BPE; those of SentencePiece are pieces of ordinary text (runs of
/// spaces, tags of HTML) and are recognised everywhere.
struct TextPiece {
  std::string text = {};
  bool control = false;
};

/// Immutable, so all members may be called concurrently.
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

  /// A raw text as Hugging Face's default call encodes it: special tokens recognised, BOS and EOS
  /// as configured. Bytes that are no UTF-8 (which Hugging Face never sees) are encoded one by one,
  /// the text on both sides of them as if it stood alone, but for what comes in front of a text. A
  /// byte that the vocabulary has no token for is left out, as there, or unknown. O(n log n) for
  /// the longest word, else O(length). Throws Error{kInvalidArgument} above 1 GiB, as all of these
  /// do.
  std::vector<TokenId> encode(std::string_view text) const;
  /// A rendered conversation: the pieces are one text, tokenized across their borders. Neither BOS
  /// nor EOS is added. A special token must stand within one control piece.
  std::vector<TokenId> encode(std::span<const TextPiece> pieces) const;

  /// The longest front of `text` whose tokens no continuation of the text is known to change. Where
  /// a tokenizer normalises in a way that reaches far, it ends with a special token.
  struct StablePrefix {
    enum class End : std::uint8_t {
      kNothing,
      kSpecialToken,
      kNormalizedToken,  // a special one, found in text that was normalised around it
      kText,
    };
    /// What a search for tokens has to know that begins within a text.
    struct SearchSeam {
      bool after_word = false;  // a word character stands before it
      std::size_t passed = 0;   // so many bytes end what was passed over: a token, but no word
    };
    /// What the text before a place means for the tokens behind it.
    struct Seam {
      End end = End::kNothing;     // what stands at its end
      SearchSeam raw = {};         // of the search in raw text
      SearchSeam normalized = {};  // of the one in normalised text
    };
    std::size_t bytes = 0;
    Seam seam = {};                 // at its end
    std::vector<TokenId> ids = {};  // BOS included
  };
  /// Pieces behind others that end with `end`, which becomes what all of them end with.
  std::vector<TokenId> encode(std::span<const TextPiece> pieces, StablePrefix::End& end) const;
  StablePrefix encode_stable(std::string_view text) const;
  /// The rest of a text behind a stable prefix with this seam: encode(a + b) ==
  /// stable(a).ids ++ encode_rest(what follows stable(a).bytes in a + b, stable(a).seam).
  std::vector<TokenId> encode_rest(std::string_view rest, const StablePrefix::Seam& seam) const;

  /// Bytes of one token within a text; empty for control and unused tokens. Throws
  /// Error{kInvalidArgument} for an unknown id.
  std::string_view bytes_of(TokenId id) const;
  /// Whether decode() leaves out a space in front of a text. A StreamDecoder that is told so gives
  /// the same text token by token.
  bool strips_space() const noexcept;
  /// Joined bytes of the tokens of a whole text, invalid UTF-8 replaced by U+FFFD.
  std::string decode(std::span<const TokenId> ids) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TOKENIZER_H_
