// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/check.h"
#include "text/byte_alphabet.h"
#include "text/pre_token_pattern.h"

namespace incipit::text {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 32;                // real files have 7
constexpr std::size_t kMaxTokens = 1 << 21;  // bounds what a single large id can make us allocate

[[noreturn]] void fail(const std::string& why) {
  base::throw_error(ErrorCode::kModelUnreadable, "tokenizer.json " + why);
}

[[noreturn]] void fail_unsupported(const std::string& what) {
  fail("has " + what + ", which is not supported");
}

/// A short rendering of a value for a message.
std::string excerpt(const Json& value) {
  constexpr std::size_t kMaxBytes = 200;
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
  if (text.size() > kMaxBytes) text = text.substr(0, kMaxBytes) + "...";
  return text;
}

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
      fail("is nested more than " + std::to_string(kMaxDepth) + " levels deep");
    }
  }
}

/// A member of an object; nullptr where it is absent or null.
const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string string_at(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr) return {};
  if (!value->is_string()) fail("has no string as \"" + std::string(key) + "\"");
  return value->get<std::string>();
}

bool bool_at(const Json& object, const char* key, bool absent) {
  const Json* value = find(object, key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) fail("has no boolean as \"" + std::string(key) + "\"");
  return value->get<bool>();
}

const Json& array_at(const Json& object, const char* key) {
  const Json* value = find(object, key);
  if (value == nullptr || !value->is_array()) fail("has no list \"" + std::string(key) + "\"");
  return *value;
}

TokenId id_of(const Json& value, const std::string& token) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMaxTokens) {
    fail("gives token \"" + token + "\" the id " + excerpt(value));
  }
  return static_cast<TokenId>(value.get<std::uint64_t>());
}

/// Makes room for a token that the file names.
std::size_t slot_for(TokenizerSpec& spec, TokenId id) {
  const auto index = static_cast<std::size_t>(id);
  if (index >= spec.tokens.size()) {
    spec.tokens.resize(index + 1);
    spec.kinds.resize(index + 1, TokenKind::kUnused);
  }
  return index;
}

void check_model(const Json& model) {
  const std::string type = string_at(model, "type");  // absent in old files
  if (!type.empty() && type != "BPE") fail_unsupported("a model of type " + type);
  if (const Json* dropout = find(model, "dropout");
      dropout != nullptr && (!dropout->is_number() || dropout->get<double>() != 0.0)) {
    fail_unsupported("a model with dropout");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!string_at(model, affix).empty()) fail_unsupported(std::string("a model with ") + affix);
  }
  if (bool_at(model, "byte_fallback", false)) fail_unsupported("a model with byte_fallback");
}

void read_vocabulary(const Json& model, TokenizerSpec& spec) {
  const Json* vocabulary = find(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty()) {
    fail("has no vocabulary");
  }
  for (const auto& [token, value] : vocabulary->items()) {
    const TokenId id = id_of(value, token);
    const std::size_t index = slot_for(spec, id);
    if (spec.kinds[index] != TokenKind::kUnused) {
      fail("gives tokens \"" + spec.tokens[index] + "\" and \"" + token + "\" the same id " +
           std::to_string(id));
    }
    spec.tokens[index] = token;
    spec.kinds[index] = TokenKind::kNormal;
  }
}

void read_merges(const Json& model, TokenizerSpec& spec) {
  const auto is_token = [](const Json& part) {
    return part.is_string() && part.get_ref<const std::string&>().find(' ') == std::string::npos;
  };
  for (const Json& merge : array_at(model, "merges")) {
    if (merge.is_string()) {
      spec.merges.push_back(merge.get<std::string>());
    } else if (merge.is_array() && merge.size() == 2 && is_token(merge[0]) && is_token(merge[1])) {
      spec.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    } else {
      fail("has a merge that is not two tokens: " + excerpt(merge));
    }
  }
}

void read_added_tokens(const Json& root, TokenizerSpec& spec) {
  const Json* added = find(root, "added_tokens");
  if (added == nullptr) return;
  if (!added->is_array()) fail("has added_tokens that are no list");
  for (const Json& token : *added) {
    const std::string content = string_at(token, "content");
    const Json* value = find(token, "id");
    if (content.empty() || value == nullptr) fail("has an added token " + excerpt(token));
    for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
      if (bool_at(token, flag, false)) {
        fail_unsupported("an added token \"" + content + "\" with " + flag);
      }
    }
    const bool special = bool_at(token, "special", false);
    if (spec.normalize_nfc && bool_at(token, "normalized", !special)) {
      fail_unsupported("an added token \"" + content + "\" that is looked for in normalized text");
    }
    const TokenId id = id_of(*value, content);
    const std::size_t index = slot_for(spec, id);
    if (spec.kinds[index] != TokenKind::kUnused && spec.tokens[index] != content) {
      fail("gives tokens \"" + spec.tokens[index] + "\" and \"" + content + "\" the same id " +
           std::to_string(id));
    }
    spec.tokens[index] = content;
    spec.kinds[index] = special ? TokenKind::kControl : TokenKind::kUserDefined;
  }
}

void read_normalizer(const Json& root, TokenizerSpec& spec) {
  const Json* normalizer = find(root, "normalizer");
  if (normalizer == nullptr) return;
  if (string_at(*normalizer, "type") != "NFC") {
    fail_unsupported("the normalizer " + excerpt(*normalizer));
  }
  spec.normalize_nfc = true;
}

bool is_byte_level(const Json& step, bool use_regex) {
  return string_at(step, "type") == "ByteLevel" && !bool_at(step, "add_prefix_space", true) &&
         bool_at(step, "use_regex", true) == use_regex;
}

bool is_split_by(const Json& step, PreTokenizer kind) {
  const Json* pattern = find(step, "pattern");
  return string_at(step, "type") == "Split" && string_at(step, "behavior") == "Isolated" &&
         !bool_at(step, "invert", false) && pattern != nullptr &&
         string_at(*pattern, "Regex") == published_regex(kind);
}

PreTokenizer pre_tokenizer_of(const Json& root) {
  const Json* pre = find(root, "pre_tokenizer");
  if (pre == nullptr) fail_unsupported("no pre_tokenizer");
  if (is_byte_level(*pre, /*use_regex=*/true)) return PreTokenizer::kGpt2;
  if (string_at(*pre, "type") == "Sequence") {
    const Json& steps = array_at(*pre, "pretokenizers");
    if (steps.size() == 2 && string_at(steps[0], "type") == "Digits" &&
        bool_at(steps[0], "individual_digits", false) && is_byte_level(steps[1], true)) {
      return PreTokenizer::kSmolLm;
    }
    if (steps.size() == 2 && is_byte_level(steps[1], /*use_regex=*/false)) {
      for (const PreTokenizer kind :
           {PreTokenizer::kGpt2, PreTokenizer::kLlama3, PreTokenizer::kQwen2}) {
        if (is_split_by(steps[0], kind)) return kind;
      }
    }
  }
  fail_unsupported("the pre_tokenizer " + excerpt(*pre));
}

/// A template that puts one special token in front of the text, or none.
void read_template(const Json& processor, TokenizerSpec& spec) {
  const Json& single = array_at(processor, "single");
  const bool with_token = single.size() == 2;
  const Json* token = with_token ? find(single[0], "SpecialToken") : nullptr;
  const Json* sequence = single.empty() ? nullptr : find(single[single.size() - 1], "Sequence");
  if (sequence == nullptr || string_at(*sequence, "id") != "A" || single.size() > 2 ||
      with_token != (token != nullptr)) {
    fail_unsupported("the post_processor template " + excerpt(single));
  }
  if (token == nullptr) return;
  const std::string name = string_at(*token, "id");
  const Json* specials = find(processor, "special_tokens");
  const Json* special = specials == nullptr ? nullptr : find(*specials, name.c_str());
  if (special == nullptr) fail("has a template with an unknown token \"" + name + "\"");
  const Json& ids = array_at(*special, "ids");
  if (ids.size() != 1) fail_unsupported("a template token \"" + name + "\" of several ids");
  spec.bos = id_of(ids[0], name);
  spec.add_bos = true;
}

void read_post_processor(const Json& processor, TokenizerSpec& spec) {
  const std::string type = string_at(processor, "type");
  if (type == "ByteLevel") return;  // concerns offsets, not ids
  if (type == "TemplateProcessing" && !spec.add_bos) return read_template(processor, spec);
  if (type == "Sequence") {
    for (const Json& step : array_at(processor, "processors")) read_post_processor(step, spec);
    return;
  }
  fail_unsupported("the post_processor " + excerpt(processor));
}

void check_decoder(const Json& root) {
  const Json* decoder = find(root, "decoder");
  if (decoder == nullptr || string_at(*decoder, "type") == "ByteLevel") return;
  fail_unsupported("the decoder " + excerpt(*decoder));
}

/// An unknown token stands for bytes that have none; with all bytes known it never comes up.
void check_unknown(const Json& model, const TokenizerSpec& spec) {
  const std::string unknown = string_at(model, "unk_token");
  if (unknown.empty()) return;
  std::array<bool, 256> known{};
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    if (spec.kinds[i] != TokenKind::kNormal) continue;
    const auto bytes = from_byte_alphabet(spec.tokens[i]);
    if (bytes && bytes->size() == 1) known[static_cast<unsigned char>(bytes->front())] = true;
  }
  if (std::find(known.begin(), known.end(), false) != known.end()) {
    fail_unsupported("the unk_token \"" + unknown + "\" and a vocabulary that lacks bytes");
  }
}

Json parse(std::string_view text) {
  if (text.size() > kMaxTokenizerJsonBytes) {
    fail("has " + std::to_string(text.size()) + " bytes; at most " +
         std::to_string(kMaxTokenizerJsonBytes) + " are read");
  }
  check_depth(text);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(std::string("is no JSON: ") + error.what());
  }
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text) {
  const Json root = parse(text);
  const Json* model = find(root, "model");
  if (model == nullptr) fail("has no model");
  check_model(*model);
  check_decoder(root);

  TokenizerSpec spec;
  spec.pre = pre_tokenizer_of(root);
  spec.ignore_merges = bool_at(*model, "ignore_merges", false);
  read_normalizer(root, spec);
  read_vocabulary(*model, spec);
  read_merges(*model, spec);
  check_unknown(*model, spec);
  read_added_tokens(root, spec);
  if (const Json* processor = find(root, "post_processor")) read_post_processor(*processor, spec);
  return spec;
}

}  // namespace incipit::text
