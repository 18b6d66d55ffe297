// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"
#include "model/files.h"
#include "model/hugging_face.h"
#include "model/vocabulary_rules.h"
#include "text/tokenizer_json.h"
#include "text/vocabulary_files.h"

namespace incipit::model {
namespace {

// The id of a token that tokenizer_config.json names; -1: none.
TokenId named_token(const JsonObject& config, const char* key, const text::TokenizerSpec& spec) {
  const std::optional<std::string> text = named_token_text(config, key);
  if (!text) return -1;
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), *text);
  if (found == spec.tokens.end()) {
    config.wrong(key, "is '" + *text + "', which is no token of the vocabulary");
  }
  return static_cast<TokenId>(found - spec.tokens.begin());
}

void add_ends(text::TokenizerSpec& spec, const JsonObject& config) {
  for (const std::uint64_t id : config.find_counts("eos_token_id")) {
    add_end(spec, checked_token(id, spec, "eos_token_id", config.file()));
  }
}

text::TokenizerSpec read_vocabulary(const std::filesystem::path& directory,
                                    const JsonObject& config) {
  const auto read = [&](const char* name) {
    const std::filesystem::path file = directory / name;
    return is_present(file) ? base::read_text_file(file, text::kMaxTokenizerJsonBytes)
                            : std::string();
  };
  if (is_present(directory / "tokenizer.json")) {
    return text::parse_tokenizer_json(read("tokenizer.json"));
  }
  if (!is_present(directory / "vocab.json") || !is_present(directory / "merges.txt")) {
    fail(directory,
         "there is no tokenizer.json, nor vocab.json with merges.txt; save the "
         "tokenizer with a current transformers");
  }
  return text::parse_vocabulary_files({read("vocab.json"), read("merges.txt"),
                                       read("added_tokens.json"), read("special_tokens_map.json"),
                                       read("tokenizer_config.json"),
                                       config.find_text("model_type").value_or("")});
}

}  // namespace

text::TokenizerSpec read_hugging_face_tokenizer(const std::filesystem::path& directory,
                                                const JsonObject& config) {
  text::TokenizerSpec spec = read_vocabulary(directory, config);
  add_ends(spec, config);
  if (is_present(directory / "generation_config.json")) {
    const JsonFile generation(directory / "generation_config.json");
    add_ends(spec, generation.root());
  }
  if (is_present(directory / "tokenizer_config.json")) {
    const JsonFile more(directory / "tokenizer_config.json");
    if (const TokenId id = named_token(more.root(), "eos_token", spec); id >= 0) add_end(spec, id);
    if (spec.bos < 0) spec.bos = named_token(more.root(), "bos_token", spec);
  }
  add_known_ends(spec);
  return spec;
}

}  // namespace incipit::model
