// SPDX-License-Identifier: Apache-2.0
#include "model/hugging_face.h"

#include <cstdint>
#include <utility>

#include "base/file.h"
#include "model/files.h"
#include "model/model_parts.h"
#include "model/recommended_sampling.h"
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

// The template, and what it calls bos_token and eos_token.
text::ChatTemplate read_chat(const std::filesystem::path& directory,
                             const text::TokenizerSpec& spec) {
  text::ChatTemplate chat;
  chat.text = read_chat_template(directory);
  const auto text_of = [&](TokenId id) {
    return id < 0 ? std::string() : spec.tokens[static_cast<std::size_t>(id)];
  };
  if (is_present(directory / "tokenizer_config.json")) {
    const JsonFile config(directory / "tokenizer_config.json");
    chat.bos = named_token_text(config.root(), "bos_token").value_or("");
    chat.eos = named_token_text(config.root(), "eos_token").value_or("");
  }
  if (chat.bos.empty()) chat.bos = text_of(spec.bos);
  if (chat.eos.empty() && !spec.ends.empty()) chat.eos = text_of(spec.ends.front());
  return chat;
}

// One text or several, but no empty one.
std::vector<std::string> read_stop_strings(const JsonObject& config) {
  const auto member = config.members().find("stop_strings");
  std::vector<std::string> stops;
  if (member != config.members().end() && member->is_array()) {
    stops = config.find_texts("stop_strings");
  } else if (auto stop = config.find_text("stop_strings")) {
    stops.push_back(std::move(*stop));
  }
  std::erase_if(stops, [](const std::string& stop) { return stop.empty(); });
  return stops;
}

// As transformers read it: without do_sample the model is greedy, whatever else is said.
SamplingDefaults read_sampling(const std::filesystem::path& directory) {
  if (!is_present(directory / "generation_config.json")) return {};
  const JsonFile file(directory / "generation_config.json");
  const JsonObject config = file.root();
  RecommendedSampling found;
  if (config.find_flag("do_sample").value_or(false)) {
    found.temperature = config.find_number("temperature").value_or(1.0);
    found.top_k = config.find_number("top_k").value_or(50.0);
    found.top_p = config.find_number("top_p");
    found.min_p = config.find_number("min_p");
  }
  found.repetition_penalty = config.find_number("repetition_penalty");
  SamplingDefaults sampling = checked_sampling(found, config.file());
  sampling.stop_strings = read_stop_strings(config);
  return sampling;
}

}  // namespace

std::optional<std::string> named_token_text(const JsonObject& config, const char* key) {
  const auto member = config.members().find(key);
  if (member != config.members().end() && member->is_object()) {
    return config.find_object(key)->find_text("content");
  }
  return config.find_text(key);
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
  text::ChatTemplate chat = read_chat(directory, tokenizer);
  const TensorNames& names = hugging_face_names(config);
  return {std::move(config),        std::move(tokenizer), std::move(chat),
          read_sampling(directory), std::move(tensors),   &names};
}

}  // namespace incipit::model
