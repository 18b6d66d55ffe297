// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <string>

#include "text/byte_alphabet.h"
#include "text/tokenizer_json_steps.h"
#include "text/tokenizer_json_values.h"
#include "text/vocabulary.h"

namespace incipit::text {
namespace {

void check_model(const Json& model) {
  if (const Json* dropout = find(model, "dropout");
      dropout != nullptr && (!dropout->is_number() || dropout->get<double>() != 0.0)) {
    fail_unsupported_json("a model with dropout");
  }
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!string_at(model, affix).empty()) {
      fail_unsupported_json(std::string("a model with ") + affix);
    }
  }
}

TokenizerModel model_of(const Json& root, const Json& model) {
  const std::string type = string_at(model, "type");  // absent in old files
  if (type == "Unigram" || (type.empty() && find(model, "unk_id") != nullptr)) {
    return TokenizerModel::kUnigram;
  }
  if (!type.empty() && type != "BPE") fail_unsupported_json("a model of type " + type);
  return is_byte_level_pre_tokenizer(find(root, "pre_tokenizer")) ? TokenizerModel::kByteLevelBpe
                                                                  : TokenizerModel::kCharacterBpe;
}

TokenKind kind_of(std::string_view token, bool byte_fallback) {
  return byte_fallback && byte_of_token(token) ? TokenKind::kByte : TokenKind::kNormal;
}

void read_vocabulary(const Json& model, TokenizerSpec& spec) {
  const Json* vocabulary = find(model, "vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty()) {
    fail_json("has no vocabulary");
  }
  const bool bytes = bool_at(model, "byte_fallback", false);
  if (bytes && spec.model == TokenizerModel::kByteLevelBpe) {
    fail_unsupported_json("a byte-level model with byte_fallback");
  }
  for (const auto& [token, value] : vocabulary->items()) {
    add_token(spec, id_of(value, token), token, kind_of(token, bytes));
  }
}

/// A list of tokens with their scores.
void read_scored_vocabulary(const Json& model, TokenizerSpec& spec) {
  const Json& list = array_at(model, "vocab");
  if (list.empty() || list.size() > kMaxTokens) fail_json("has no vocabulary, or a huge one");
  const bool bytes = bool_at(model, "byte_fallback", false);
  for (const Json& entry : list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_number()) {
      fail_json("has a vocabulary entry that is no token with its score: " + excerpt(entry));
    }
    const auto& token = entry[0].get_ref<const std::string&>();
    spec.tokens.push_back(token);
    spec.kinds.push_back(kind_of(token, bytes));
    spec.scores.push_back(entry[1].get<double>());
  }
  const Json* unknown = find(model, "unk_id");
  if (unknown == nullptr) fail_unsupported_json("a Unigram model without unk_id");
  spec.unknown = id_of(*unknown, "unk_id");
  spec.fuse_unknown = true;
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
      fail_json("has a merge that is not two tokens: " + excerpt(merge));
    }
  }
}

void add_rule(const Json& token, TokenId id, TokenizerSpec& spec) {
  AddedTokenRule rule;
  rule.strip_left = bool_at(token, "lstrip", false);
  rule.strip_right = bool_at(token, "rstrip", false);
  rule.whole_word = bool_at(token, "single_word", false);
  rule.normalized = bool_at(token, "normalized", !bool_at(token, "special", false));
  if (rule.strip_left || rule.strip_right || rule.whole_word || rule.normalized) {
    spec.rules[id] = rule;
  }
}

void read_added_tokens(const Json& root, TokenizerSpec& spec) {
  if (find(root, "added_tokens") == nullptr) return;
  for (const Json& token : array_at(root, "added_tokens")) {
    const std::string content = string_at(token, "content");
    const Json* value = find(token, "id");
    if (content.empty() || value == nullptr) fail_json("has an added token without text or id");
    const TokenId id = id_of(*value, content);
    const bool special = bool_at(token, "special", false);
    add_token(spec, id, content, special ? TokenKind::kControl : TokenKind::kUserDefined);
    add_rule(token, id, spec);
  }
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
    fail_unsupported_json("the unk_token \"" + unknown + "\" and a vocabulary that lacks bytes");
  }
}

/// The unknown token of a model of characters.
void read_unknown(const Json& model, TokenizerSpec& spec) {
  spec.fuse_unknown = bool_at(model, "fuse_unk", false);
  const std::string unknown = string_at(model, "unk_token");
  if (unknown.empty()) return;
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), unknown);
  if (found == spec.tokens.end()) fail_json("has an unk_token that is no token: " + unknown);
  spec.unknown = static_cast<TokenId>(found - spec.tokens.begin());
}

void read_byte_level(const Json& root, const Json& model, TokenizerSpec& spec) {
  read_byte_level_pre_tokenizer(*find(root, "pre_tokenizer"), spec);
  const Json* decoder = find(root, "decoder");
  if (decoder != nullptr && string_at(*decoder, "type") != "ByteLevel") {
    fail_unsupported_json("the decoder " + excerpt(*decoder));
  }
  read_vocabulary(model, spec);
  read_merges(model, spec);
  check_unknown(model, spec);
}

void read_sentence_piece(const Json& root, const Json& model, TokenizerSpec& spec) {
  if (const Json* pre = find(root, "pre_tokenizer")) read_pre_tokenizer(*pre, spec);
  const Json* decoder = find(root, "decoder");
  if (decoder == nullptr) fail_unsupported_json("neither a byte-level pre_tokenizer nor a decoder");
  read_decoder(*decoder, spec);
  if (spec.model == TokenizerModel::kUnigram) return read_scored_vocabulary(model, spec);
  read_vocabulary(model, spec);
  read_merges(model, spec);
  read_unknown(model, spec);
}

}  // namespace

TokenizerSpec parse_tokenizer_json(std::string_view text) { return spec_of_json(parse_json(text)); }

TokenizerSpec spec_of_json(const Json& root) {
  const Json* model = find(root, "model");
  if (model == nullptr) fail_json("has no model");
  check_model(*model);

  TokenizerSpec spec;
  spec.model = model_of(root, *model);
  spec.ignore_merges = bool_at(*model, "ignore_merges", false);
  if (const Json* normalizer = find(root, "normalizer")) read_normalizer(*normalizer, spec);
  if (spec.model == TokenizerModel::kByteLevelBpe) {
    read_byte_level(root, *model, spec);
  } else {
    read_sentence_piece(root, *model, spec);
  }
  read_added_tokens(root, spec);
  if (const Json* processor = find(root, "post_processor")) read_post_processor(*processor, spec);
  return spec;
}

}  // namespace incipit::text
