// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_TOKENIZER_JSON_VALUES_H_
#define INCIPIT_TEXT_TOKENIZER_JSON_VALUES_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

// Values of the JSON files that describe a tokenizer; what is wrong with one is an
// Error{kModelUnreadable}.

namespace incipit::text {

using Json = nlohmann::json;

inline constexpr std::size_t kMaxTokens = 1 << 21;  // bounds what one large id makes us allocate

[[noreturn]] void fail_json(const std::string& why);               // of the whole
[[noreturn]] void fail_unsupported_json(const std::string& what);  // names it

/// A whole text, at most 32 levels deep.
Json parse_json(std::string_view text);

/// A short rendering of a value for a message.
std::string excerpt(const Json& value);

/// A member of an object; nullptr where it is absent or null.
const Json* find(const Json& object, const char* key);
std::string string_at(const Json& object, const char* key);  // absent: empty
bool bool_at(const Json& object, const char* key, bool absent);
const Json& array_at(const Json& object, const char* key);  // must be there

/// The id that a file gives a token.
TokenId id_of(const Json& value, const std::string& token);
/// What a tokenizer.json says that is parsed already.
TokenizerSpec spec_of_json(const Json& root);

/// Makes room for a token that a file names.
std::size_t slot_for(TokenizerSpec& spec, TokenId id);
/// A token of the vocabulary; one id has one text.
void add_token(TokenizerSpec& spec, TokenId id, const std::string& token, TokenKind kind);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_TOKENIZER_JSON_VALUES_H_
