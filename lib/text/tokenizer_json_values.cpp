// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_json_values.h"

#include "base/check.h"
#include "text/tokenizer_json.h"

namespace incipit::text {
namespace {

constexpr int kMaxDepth = 32;  // real files have 7

/// The parser itself does not recurse, but bounds nothing.
void check_depth(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kMaxDepth) {
      fail_json("is nested more than " + std::to_string(kMaxDepth) + " levels deep");
    }
  }
}

}  // namespace

void fail_json(const std::string& why) {
  base::throw_error(ErrorCode::kModelUnreadable, "the tokenizer's JSON " + why);
}

void fail_unsupported_json(const std::string& what) {
  fail_json("has " + what + ", which is not supported");
}

std::string excerpt(const Json& value) {
  constexpr std::size_t kMaxBytes = 200;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kMaxBytes) text = text.substr(0, kMaxBytes) + "...";
  return text;
}

Json parse_json(std::string_view text) {
  if (text.size() > kMaxTokenizerJsonBytes) {
    fail_json("has " + std::to_string(text.size()) + " bytes; at most " +
              std::to_string(kMaxTokenizerJsonBytes) + " are read");
  }
  check_depth(text);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail_json(std::string("is no JSON: ") + error.what());
  }
}

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string string_at(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr) return {};
  if (!value->is_string()) fail_json("has no string as \"" + std::string(key) + "\"");
  return value->get<std::string>();
}

bool bool_at(const Json& object, const char* key, bool absent) {
  const Json* value = find(object, key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail_json("has no boolean as \"" + std::string(key) + "\"");
  return value->get<bool>();
}

const Json& array_at(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_array()) fail_json("has no list \"" + std::string(key) + "\"");
  return *value;
}

TokenId id_of(const Json& value, const std::string& token) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMaxTokens) {
    fail_json("gives token \"" + token + "\" the id " + excerpt(value));
  }
  return static_cast<TokenId>(value.get<std::uint64_t>());
}

std::size_t slot_for(TokenizerSpec& spec, TokenId id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= spec.tokens.size()) {
    spec.tokens.resize(index + 1);
    spec.kinds.resize(index + 1, TokenKind::kUnused);
  }
  return index;
}

void add_token(TokenizerSpec& spec, TokenId id, const std::string& token, TokenKind kind) {
  const std::size_t index = slot_for(spec, id);
  if (spec.kinds[index] != TokenKind::kUnused && spec.tokens[index] != token) {
    fail_json("gives tokens \"" + spec.tokens[index] + "\" and \"" + token + "\" the same id " +
              std::to_string(id));
  }
  spec.tokens[index] = token;
  spec.kinds[index] = kind;
}

}  // namespace incipit::text
