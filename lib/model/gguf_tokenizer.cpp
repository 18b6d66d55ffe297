// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/files.h"
#include "model/gguf_model.h"
#include "model/vocabulary_rules.h"

namespace incipit::model {
namespace {

struct PreName {
  std::string_view name;  // of tokenizer.ggml.pre
  text::PreTokenizer pre;
};
constexpr auto kPreNames = std::to_array<PreName>({
    {"gpt-2", text::PreTokenizer::kGpt2},
    {"smollm", text::PreTokenizer::kSmolLm},
    {"llama-bpe", text::PreTokenizer::kLlama3},
    {"llama3", text::PreTokenizer::kLlama3},
    {"llama-v3", text::PreTokenizer::kLlama3},
    {"qwen2", text::PreTokenizer::kQwen2},
    {"deepseek-r1-qwen", text::PreTokenizer::kQwen2},
});

// "default" is refused with the rest: it stands for a file whose converter did not know the rules,
// and prompts would be cut in a way that the model was not trained with.
text::PreTokenizer read_pre(const GgufMetadata& metadata) {
  const std::string_view name = metadata.get_text("tokenizer.ggml.pre");
  for (const PreName& known : kPreNames) {
    if (known.name == name) return known.pre;
  }
  fail(metadata.file(), "tokenizer.ggml.pre is '" + std::string(name) +
                            "', a pre-tokenizer that incipit does not know; it knows gpt-2, "
                            "smollm, llama-bpe and qwen2");
}

text::TokenKind to_kind(std::int32_t type, const GgufMetadata& metadata) {
  switch (type) {
    case 1:
      return text::TokenKind::kNormal;
    case 2:  // the unknown token, special to Hugging Face's tokenizers as well
    case 3:
      return text::TokenKind::kControl;
    case 4:
      return text::TokenKind::kUserDefined;
    case 5:
      return text::TokenKind::kUnused;
    default:
      fail(metadata.file(), "tokenizer.ggml.token_type holds " + std::to_string(type) +
                                ", which no byte-level BPE token is; the file is damaged");
  }
}

void read_vocabulary(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  spec.tokens = metadata.get_texts("tokenizer.ggml.tokens");
  const std::vector<std::int32_t> types = metadata.get_i32s("tokenizer.ggml.token_type");
  if (types.size() != spec.tokens.size()) {
    fail(metadata.file(), "there are " + std::to_string(spec.tokens.size()) + " tokens, but " +
                              std::to_string(types.size()) + " token types; the file is damaged");
  }
  spec.kinds.reserve(types.size());
  for (const std::int32_t type : types) spec.kinds.push_back(to_kind(type, metadata));
  spec.merges = metadata.get_texts("tokenizer.ggml.merges");
}

void read_special_ids(const GgufMetadata& metadata, text::TokenizerSpec& spec) {
  const auto token = [&](std::string_view key) -> TokenId {
    const auto id = metadata.find_count(key);
    return id ? checked_token(*id, spec, std::string(key), metadata.file()) : TokenId{-1};
  };
  spec.bos = token("tokenizer.ggml.bos_token_id");
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    if (const TokenId id = token(key); id >= 0) add_end(spec, id);
  }
  add_known_ends(spec);
}

}  // namespace

text::TokenizerSpec read_gguf_tokenizer(const GgufMetadata& metadata) {
  const std::string_view model = metadata.get_text("tokenizer.ggml.model");
  if (model != "gpt2") {
    fail(metadata.file(), "the tokenizer is of the kind '" + std::string(model) +
                              "'; incipit knows byte-level BPE ('gpt2') only");
  }
  text::TokenizerSpec spec;
  spec.pre = read_pre(metadata);
  spec.normalize_nfc = spec.pre == text::PreTokenizer::kQwen2;
  spec.ignore_merges = spec.pre == text::PreTokenizer::kLlama3;
  read_vocabulary(metadata, spec);
  read_special_ids(metadata, spec);
  spec.add_bos = metadata.find_flag("tokenizer.ggml.add_bos_token")
                     .value_or(spec.pre == text::PreTokenizer::kLlama3);
  if (spec.add_bos && spec.bos < 0) {
    fail(metadata.file(), "texts get a BOS token, but none is named; the file is damaged");
  }
  return spec;
}

}  // namespace incipit::model
