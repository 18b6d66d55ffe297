// SPDX-License-Identifier: Apache-2.0
#include "model/hugging_face.h"

#include <cstdint>
#include <utility>

#include "base/file.h"
#include "model/files.h"
#include "model/model_parts.h"
#include "model/safetensors.h"

namespace incipit::model {
namespace {

constexpr std::uint64_t kMaxTemplateBytes = std::uint64_t{1} << 20;

std::string name_of(const std::filesystem::path& directory) {
  std::error_code error;
  return std::filesystem::canonical(directory, error).filename().string();
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
