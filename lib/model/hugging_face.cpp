// SPDX-License-Identifier: Apache-2.0
#include "model/hugging_face.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/file.h"
#include "model/files.h"
#include "model/model_parts.h"
#include "model/safetensors.h"
#include "model/vocabulary_rules.h"
#include "text/tokenizer_json.h"

namespace incipit::model {
namespace {

constexpr std::uint64_t kMaxTemplateBytes = std::uint64_t{1} << 20;

// A token that tokenizer_config.json names by its text, or by an object that holds it; -1: none.
TokenId named_token(const JsonObject& config, const char* key, const text::TokenizerSpec& spec) {
  const auto member = config.members().find(key);
  std::optional<std::string> text;
  if (member != config.members().end() && member->is_object()) {
    text = config.find_object(key)->find_text("content");
  } else {
    text = config.find_text(key);
  }
  if (!text) return -1;
  const auto found = std::find(spec.tokens.begin(), spec.tokens.end(), *text);
  if (found == spec.tokens.end()) {
    config.wrong(key, "is '" + *text + "', which is no token of tokenizer.json");
  }
  return static_cast<TokenId>(found - spec.tokens.begin());
}

std::string name_of(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::canonical(directory, error).filename().string();
}

void add_ends(text::TokenizerSpec& spec, const JsonObject& config) {
  for (const std::uint64_t id : config.find_counts("eos_token_id")) {
    add_end(spec, checked_token(id, spec, "eos_token_id", config.file()));
  }
}

std::string template_of(const JsonObject& config) {
  const auto member = config.members().find("chat_template");
  if (member == config.members().end() || !member->is_array()) {
    return config.find_text("chat_template").value_or("");
  }
  for (const nlohmann::json& entry : *member) {
    if (!entry.is_object()) config.wrong("chat_template", "is no list of named templates");
    const JsonObject named(entry, config.file());
    if (named.find_text("name") == "default") return named.find_text("template").value_or("");
  }
  return "";
}

}  // namespace

text::TokenizerSpec read_hugging_face_tokenizer(const std::filesystem::path& directory,
                                                const JsonObject& config) {
  const std::filesystem::path file = directory / "tokenizer.json";
  if (!is_present(file)) {
    fail(directory, "there is no tokenizer.json; save the tokenizer with a current transformers");
  }
  text::TokenizerSpec spec =
      text::parse_tokenizer_json(base::read_text_file(file, text::kMaxTokenizerJsonBytes));
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

std::string read_chat_template(const std::filesystem::path& directory) {
  if (is_present(directory / "chat_template.jinja")) {
    return base::read_text_file(directory / "chat_template.jinja", kMaxTemplateBytes);
  }
  if (!is_present(directory / "tokenizer_config.json")) return "";
  const JsonFile config(directory / "tokenizer_config.json");
  return template_of(config.root());
}

ModelParts read_hugging_face(const std::filesystem::path& directory) {
  if (!is_present(directory / "config.json")) {
    fail(directory, "there is no config.json; give a .gguf file or a Hugging Face directory");
  }
  if (is_present(directory / "adapter_config.json")) {
    fail(directory, "it holds an adapter, which incipit does not apply; merge it into the model");
  }
  const JsonFile file(directory / "config.json");
  TensorSource tensors = open_safetensors(directory);
  ModelConfig config = read_hugging_face_config(file.root(), tensors);
  if (config.name.empty()) config.name = name_of(directory);
  text::TokenizerSpec tokenizer = read_hugging_face_tokenizer(directory, file.root());
  return {std::move(config), std::move(tokenizer), read_chat_template(directory),
          std::move(tensors), &kHuggingFaceNames};
}

}  // namespace incipit::model
