// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_model.h"

#include <utility>
#include <vector>

#include "model/gguf.h"
#include "model/model_parts.h"

namespace incipit::model {

ModelParts read_gguf(const std::filesystem::path& path) {
  base::ReadFile file(path);
  GgufHeader header = read_gguf_header(file);
  std::vector<base::ReadFile> files;
  files.push_back(std::move(file));
  TensorSource tensors(std::move(files), std::move(header.tensors));
  ModelConfig config = read_gguf_config(header.metadata, tensors);
  text::TokenizerSpec tokenizer = read_gguf_tokenizer(header.metadata);
  std::string chat_template(header.metadata.find_text("tokenizer.chat_template").value_or(""));
  return {std::move(config), std::move(tokenizer), std::move(chat_template), std::move(tensors),
          &kGgufNames};
}

}  // namespace incipit::model
