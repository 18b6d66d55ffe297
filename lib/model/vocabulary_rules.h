// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_VOCABULARY_RULES_H_
#define INCIPIT_MODEL_VOCABULARY_RULES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "text/tokenizer.h"

namespace incipit::model {

/// A token id from a file. Throws Error{kModelUnreadable} where the vocabulary has no such token.
TokenId checked_token(std::uint64_t id, const text::TokenizerSpec& spec, const std::string& what,
                      const std::filesystem::path& file);

/// Adds to spec.ends, once.
void add_end(text::TokenizerSpec& spec, TokenId id);

/// Adds the control tokens that end a turn or a document by their well-known names. A file often
/// names only one of them, and after any other a model would go on with an invented next turn.
void add_known_ends(text::TokenizerSpec& spec);

/// Makes the vocabulary as large as the embedding, whose last rows may stand for no token. Throws
/// Error{kModelUnreadable} where it is larger.
void pad_vocabulary(text::TokenizerSpec& spec, std::size_t rows, const std::filesystem::path& file);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_VOCABULARY_RULES_H_
