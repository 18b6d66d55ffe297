// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TOKENIZER_JSON_STEPS_H_
#define INCIPIT_TEXT_TOKENIZER_JSON_STEPS_H_

#include "text/tokenizer_json_values.h"

namespace incipit::text {

// The parts of a tokenizer.json beside its model. Each throws Error{kModelUnreadable} that names
// what is not supported.

/// True where a pre_tokenizer (null: none) makes bytes of text, as byte-level BPE has it.
bool is_byte_level_pre_tokenizer(const Json* pre_tokenizer);

void read_normalizer(const Json& normalizer, TokenizerSpec& spec);
/// Of byte-level BPE.
void read_byte_level_pre_tokenizer(const Json& pre_tokenizer, TokenizerSpec& spec);
/// Of SentencePiece's models; behind the normaliser.
void read_pre_tokenizer(const Json& pre_tokenizer, TokenizerSpec& spec);
void read_post_processor(const Json& processor, TokenizerSpec& spec);
/// Of SentencePiece's models.
void read_decoder(const Json& decoder, TokenizerSpec& spec);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TOKENIZER_JSON_STEPS_H_
