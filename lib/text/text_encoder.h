// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TEXT_ENCODER_H_
#define INCIPIT_TEXT_TEXT_ENCODER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/normalizer.h"
#include "text/pre_token_pattern.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"
#include "text/unigram.h"

namespace incipit::text {

/// What turns text into tokens; immutable.
struct EncodingRules {
  SpecialTokens specials;    // looked for in raw text
  SpecialTokens normalized;  // looked for in what the normaliser makes of the rest
  SpecialTokens control;     // looked for in control pieces, in place of both
  SpecialTokens contents;    // looked for in the contents of messages
  Normalizer normalizer;
  Normalizer spacing;  // of the text between tokens
  bool spacing_at_begin_only = false;
  std::optional<PreTokenPattern> pattern = {};  // what cuts pre-tokens; none: `split_before`
  std::string split_before = {};                // begins a pre-token; empty: there is one only
  std::optional<Bpe> bpe = {};                  // one of the two
  std::optional<Unigram> unigram = {};
};

/// One call of Tokenizer::encode and its relatives: the steps of Hugging Face's pipeline. Special
/// tokens are set apart, what is between them is normalised, cut into pre-tokens, and these into
/// tokens.
///
/// Hugging Face never sees invalid UTF-8. Here each invalid byte is a pre-token of its own, and the
/// text before and behind it is encoded as if it stood alone, but for what comes in front.
class TextEncoder {
 public:
  using End = Tokenizer::StablePrefix::End;
  using Seam = Tokenizer::StablePrefix::Seam;

  /// Appends to `out`. Both must outlive it. `before` tells of what comes before the text.
  TextEncoder(const EncodingRules& rules, std::vector<TokenId>& out, const Seam& before = {});

  void raw(std::string_view text);
  void pieces(std::span<const TextPiece> pieces);
  /// A raw text that may go on: only the front of it whose tokens no continuation can change.
  /// Returns the length of that.
  std::size_t raw_stable(std::string_view text);
  /// Between all that is encoded and what follows; whole after raw_stable(), else its end only.
  const Seam& seam() const noexcept { return before_; }

 private:
  // Each takes the front of a text that it can encode for good, all of it unless the text is
  // `open`, and returns its length.
  std::size_t plain(std::string_view text, bool open);
  std::size_t valid(std::string_view text, bool open);
  template <class Settled>
  void between(std::string_view text, End before, bool open, const Settled& settled);
  template <class Settled>
  void pre_tokens(std::string_view text, bool open, const Settled& settled);
  template <class Settled>
  void pre_tokens_by_pattern(std::string_view text, bool open, const Settled& settled);
  template <class Settled>
  void pre_tokens_by_mark(std::string_view text, bool open, const Settled& settled);
  std::size_t subwords(std::string_view text, bool open);
  void special(TokenId id);
  void invalid(std::string_view bytes);

  const EncodingRules& rules_;
  std::vector<TokenId>& out_;
  Seam before_;  // what stands before the text that comes next
  bool find_normalized_ = true;
  std::optional<PreTokenPattern::Scanner> scanner_;
  Bpe::Scratch scratch_;
  Unigram::Scratch unigram_scratch_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TEXT_ENCODER_H_
