// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary_files.h"

#include <array>
#include <map>

#include "text/ascii.h"
#include "text/pre_token_pattern.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_json_values.h"

// The files are put together into what a tokenizer.json would hold, so that one reader knows what
// is supported.

namespace incipit::text {
namespace {

enum class Family { kGpt2, kQwen2 };

Json parse_or_empty(const std::string& text) {
  return text.empty() ? Json::object() : parse_json(text);
}

Family family_of(const Json& config, const std::string& model_type) {
  const std::string name = string_at(config, "tokenizer_class");
  if (name.starts_with("GPT2Tokenizer")) return Family::kGpt2;
  if (name.starts_with("Qwen2Tokenizer")) return Family::kQwen2;
  if (name.empty() && (model_type == "gpt2" || model_type == "opt")) return Family::kGpt2;
  if (name.empty() && model_type == "qwen2") return Family::kQwen2;
  fail_json("comes as vocab.json and merges.txt of the kind '" +
            (name.empty() ? model_type : name) +
            "'; incipit knows GPT2Tokenizer and Qwen2Tokenizer. Save it with a current "
            "transformers, which writes tokenizer.json");
}

Json merges_of_lines(std::string_view text) {
  Json merges = Json::array();
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = line_end(text, begin);
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    if (!line.empty() && !(begin == 0 && line.starts_with("#version"))) merges.push_back(line);
    begin = end;
  }
  return merges;
}

/// Added tokens, by their texts.
class AddedTokens {
 public:
  explicit AddedTokens(const Json& vocabulary) : vocabulary_(vocabulary) {}

  void add(const std::string& content, const Json& id, const Json& flags) {
    Json& token = tokens_[content];
    const bool special = bool_at(token, "special", false) || bool_at(flags, "special", false);
    token = {{"content", content}, {"id", id}, {"special", special}};
    for (const char* flag : {"lstrip", "rstrip", "single_word", "normalized"}) {
      token[flag] = bool_at(flags, flag, false);
    }
  }

  /// A special token that a file names by its text, or by an object that holds it.
  void add_special(const Json& value) {
    const std::string content =
        value.is_string() ? value.get<std::string>() : string_at(value, "content");
    if (content.empty()) return;
    const auto known = tokens_.find(content);
    if (known != tokens_.end()) {
      known->second["special"] = true;
      return;
    }
    const Json* id = find(vocabulary_, content.c_str());
    if (id == nullptr) fail_json("names a special token that it does not have: " + content);
    Json flags = value.is_object() ? value : Json::object();
    flags["special"] = true;
    add(content, *id, flags);
  }

  Json list() const {
    Json list = Json::array();
    for (const auto& [content, token] : tokens_) list.push_back(token);
    return list;
  }
  const Json* id_of(const std::string& content) const {
    const auto known = tokens_.find(content);
    return known == tokens_.end() ? nullptr : &known->second["id"];
  }

 private:
  const Json& vocabulary_;
  std::map<std::string, Json> tokens_;
};

void add_listed(const Json& added, const Json& config, AddedTokens& tokens) {
  for (const auto& [content, id] : added.items()) tokens.add(content, id, Json::object());
  const Json* decoder = find(config, "added_tokens_decoder");
  if (decoder == nullptr || !decoder->is_object()) return;
  for (const auto& [id, token] : decoder->items()) {
    std::uint64_t number = 0;
    for (const char digit : id) {
      if (!is_digit(digit) || number > kMaxTokens) fail_json("has an added token with id " + id);
      number = 10 * number + static_cast<std::uint64_t>(digit - '0');
    }
    tokens.add(string_at(token, "content"), number, token);
  }
}

void add_specials(const Json& names, AddedTokens& tokens) {
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    if (const Json* token = find(names, key)) tokens.add_special(*token);
  }
  const Json* more = find(names, "additional_special_tokens");
  if (more == nullptr || !more->is_array()) return;
  for (const Json& token : *more) tokens.add_special(token);
}

/// The template that puts BOS and EOS around a text, where the configuration wants them.
Json template_of(const Json& config, const Json& map, const AddedTokens& tokens) {
  Json single = Json::array(), specials = Json::object();
  const auto add = [&](const char* flag, const char* key) {
    if (!bool_at(config, flag, false)) return;
    const Json* value = find(config, key) != nullptr ? find(config, key) : find(map, key);
    if (value == nullptr) fail_json("adds a token that it does not name: " + std::string(key));
    const std::string content =
        value->is_string() ? value->get<std::string>() : string_at(*value, "content");
    const Json* id = tokens.id_of(content);
    if (id == nullptr) fail_json("adds a token that it does not have: " + content);
    single.push_back({{"SpecialToken", {{"id", content}}}});
    specials[content] = {{"ids", Json::array({*id})}};
  };
  add("add_bos_token", "bos_token");
  single.push_back({{"Sequence", {{"id", "A"}}}});
  add("add_eos_token", "eos_token");
  return {{"type", "TemplateProcessing"}, {"single", single}, {"special_tokens", specials}};
}

Json pre_tokenizer_of(Family family, bool add_space) {
  Json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", add_space}, {"use_regex", true}};
  if (family == Family::kGpt2) return byte_level;
  byte_level["use_regex"] = false;
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", published_regex(PreTokenizer::kQwen2)}}},
                      {"behavior", "Isolated"}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

}  // namespace

TokenizerSpec parse_vocabulary_files(const VocabularyFiles& files) {
  const Json config = parse_or_empty(files.tokenizer_config);
  const Json map = parse_or_empty(files.special_tokens_map);
  const Family family = family_of(config, files.model_type);
  const Json vocabulary = parse_or_empty(files.vocabulary);

  AddedTokens tokens(vocabulary);
  add_listed(parse_or_empty(files.added_tokens), config, tokens);
  add_specials(map, tokens);
  add_specials(config, tokens);

  Json root = {
      {"added_tokens", tokens.list()},
      {"pre_tokenizer", pre_tokenizer_of(family, bool_at(config, "add_prefix_space", false))},
      {"decoder", {{"type", "ByteLevel"}}},
      {"post_processor", template_of(config, map, tokens)},
      {"model",
       {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges_of_lines(files.merges)}}},
  };
  if (family == Family::kQwen2) root["normalizer"] = {{"type", "NFC"}};
  return spec_of_json(root);
}

}  // namespace incipit::text
