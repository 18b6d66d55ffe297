// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TOKENIZER_JSON_H_
#define INCIPIT_TEXT_TOKENIZER_JSON_H_

#include <cstdint>
#include <string_view>

#include "text/tokenizer.h"

namespace incipit::text {

/// The largest tokenizer.json that is read; those of vocabularies of 150,000 tokens have 12 MB.
inline constexpr std::uint64_t kMaxTokenizerJsonBytes = std::uint64_t{32} << 20;

/// Reads the text of a Hugging Face tokenizer.json: byte-level BPE with one of the pre-tokenizers
/// of PreTokenizer. What comes from other files stays for the caller: `ends`, and `bos` where the
/// file adds none. Ids that the file leaves out are unused tokens.
///
/// Added tokens are found in one pass; Hugging Face takes those marked `normalized` in a second
/// one, which differs only where the texts of two added tokens overlap.
///
/// Throws Error{kModelUnreadable} that names what is damaged or not supported.
TokenizerSpec parse_tokenizer_json(std::string_view text);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TOKENIZER_JSON_H_
