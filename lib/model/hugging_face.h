// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_HUGGING_FACE_H_
#define INCIPIT_MODEL_HUGGING_FACE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "model/config.h"
#include "model/json_file.h"
#include "model/tensor_names.h"
#include "model/tensor_source.h"
#include "text/tokenizer.h"

namespace incipit::model {

/// What config.json says about its model; `tensors` decides what it leaves open. Throws
/// Error{kModelUnreadable}, also for a model that incipit would compute wrongly.
ModelConfig read_hugging_face_config(const JsonObject& config, const TensorSource& tensors);

/// What that family's tensors are called.
const TensorNames& hugging_face_names(const ModelConfig& config);

/// The tokenizer of a directory (tokenizer.json, else vocab.json with merges.txt), with the ends
/// that its config.json and generation_config.json name. Throws Error{kModelUnreadable}.
text::TokenizerSpec read_hugging_face_tokenizer(const std::filesystem::path& directory,
                                                const JsonObject& config);

/// The text of a token that tokenizer_config.json names by it, or by an object that holds it.
std::optional<std::string> named_token_text(const JsonObject& config, const char* key);

/// chat_template.jinja, or what tokenizer_config.json holds; empty: none. Throws
/// Error{kModelUnreadable}.
std::string read_chat_template(const std::filesystem::path& directory);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_HUGGING_FACE_H_
