// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TEXT_ENCODER_H_
#define INCIPIT_TEXT_TEXT_ENCODER_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "text/bpe.h"
#include "text/pre_token_pattern.h"
#include "text/special_tokens.h"
#include "text/tokenizer.h"

namespace incipit::text {

/// What turns text into tokens; immutable.
struct EncodingRules {
  const SpecialTokens& specials;
  const PreTokenPattern& pattern;
  const Bpe& bpe;
  bool normalize_nfc = false;
};

/// One call of Tokenizer::encode and its relatives: the steps of Hugging Face's pipeline. Special
/// tokens are set apart, what is between them is normalised, cut into pre-tokens, and merged.
///
/// Hugging Face never sees invalid UTF-8. Here each invalid byte is a pre-token of its own, and the
/// text before and behind it is encoded as if it stood alone.
class TextEncoder {
 public:
  /// Appends to `out`. Both must outlive it.
  TextEncoder(const EncodingRules& rules, std::vector<TokenId>& out);

  void raw(std::string_view text);
  void pieces(std::span<const TextPiece> pieces);
  /// A raw text that may go on: only the front of it whose tokens no continuation can change.
  /// Returns the length of that.
  std::size_t raw_stable(std::string_view text);

 private:
  void plain(std::string_view text);
  std::size_t plain_stable(std::string_view text);
  void valid(std::string_view text);
  std::size_t valid_stable(std::string_view text);
  void invalid(std::string_view bytes);

  const EncodingRules& rules_;
  std::vector<TokenId>& out_;
  PreTokenPattern::Scanner scanner_;
  Bpe::Scratch scratch_;
};

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TEXT_ENCODER_H_
