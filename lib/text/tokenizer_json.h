// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TOKENIZER_JSON_H_
#define INCIPIT_TEXT_TOKENIZER_JSON_H_

#include <cstdint>
#include <string_view>

#include "text/tokenizer.h"

namespace incipit::text {

/// The largest tokenizer.json that is read; that of Gemma 3's 262,144 tokens has 33 MB.
inline constexpr std::uint64_t kMaxTokenizerJsonBytes = std::uint64_t{64} << 20;

/// Reads the text of a Hugging Face tokenizer.json:
/// - byte-level BPE with one of the pre-tokenizers of PreTokenizer;
/// - SentencePiece's BPE and Unigram, with the normalizers of NormalizerStep, Metaspace (behind
///   WhitespaceSplit or not) or no pre-tokenizer, byte fallback and the decoders that go with them;
/// - added tokens with all their rules, and templates that put one token on either side of a text.
///
/// What comes from other files stays for the caller: `ends`, and `bos` where the file adds none.
/// Ids that the file leaves out are unused tokens. Throws Error{kModelUnreadable} that names what
/// is damaged or not supported.
TokenizerSpec parse_tokenizer_json(std::string_view text);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TOKENIZER_JSON_H_
