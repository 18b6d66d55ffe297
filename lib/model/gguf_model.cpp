// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_model.h"

#include <utility>
#include <vector>

#include "model/gguf.h"
#include "model/model_parts.h"
#include "model/recommended_sampling.h"
#include "model/vocabulary_rules.h"

namespace incipit::model {
namespace {

text::ChatTemplate read_gguf_chat(const GgufMetadata& metadata, const text::TokenizerSpec& spec) {
  const auto token = [&](std::string_view key) -> std::string {
    const auto id = metadata.find_count(key);
    return id ? spec.tokens[static_cast<std::size_t>(
                    checked_token(*id, spec, std::string(key), metadata.file()))]
              : std::string();
  };
  text::ChatTemplate chat;
  chat.text = metadata.find_text("tokenizer.chat_template").value_or("");
  chat.bos = token("tokenizer.ggml.bos_token_id");
  chat.eos = token("tokenizer.ggml.eos_token_id");
  return chat;
}

SamplingDefaults read_gguf_sampling(const GgufMetadata& metadata) {
  const auto number = [&](const char* key) { return metadata.find_number(key); };
  RecommendedSampling found;
  found.temperature = number("general.sampling.temp");
  found.top_k = number("general.sampling.top_k");
  found.top_p = number("general.sampling.top_p");
  found.min_p = number("general.sampling.min_p");
  found.repetition_penalty = number("general.sampling.penalty_repeat");
  return checked_sampling(found, metadata.file());
}

}  // namespace

ModelParts read_gguf(const std::filesystem::path& path) {
  base::ReadFile file(path);
  GgufHeader header = read_gguf_header(file);
  std::vector<base::ReadFile> files;
  files.push_back(std::move(file));
  TensorSource tensors(std::move(files), std::move(header.tensors));
  ModelConfig config = read_gguf_config(header.metadata, tensors);
  text::TokenizerSpec tokenizer = read_gguf_tokenizer(header.metadata);
  text::ChatTemplate chat = read_gguf_chat(header.metadata, tokenizer);
  const TensorNames& names = gguf_names(config);
  return {std::move(config),  std::move(tokenizer),
          std::move(chat),    read_gguf_sampling(header.metadata),
          std::move(tensors), &names};
}

}  // namespace incipit::model
