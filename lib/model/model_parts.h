// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_MODEL_PARTS_H_
#define INCIPIT_MODEL_MODEL_PARTS_H_

#include <filesystem>

#include "model/config.h"
#include "model/tensor_source.h"
#include "model/weights_loader.h"
#include "text/chat_format.h"
#include "text/tokenizer.h"

namespace incipit::model {

/// What a reader of one kind of file makes of it. What all kinds have in common (the tensors that
/// a config asks for, the size of the vocabulary) is checked by open_model().
struct ModelParts {
  ModelConfig config;
  text::TokenizerSpec tokenizer;
  text::ChatTemplate chat_template;
  SamplingDefaults sampling;
  TensorSource tensors;
  const TensorNames* names;  // of static storage
};

/// Both throw Error{kModelUnreadable}, also for a model that incipit would compute wrongly.
ModelParts read_gguf(const std::filesystem::path& file);
ModelParts read_hugging_face(const std::filesystem::path& directory);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_MODEL_PARTS_H_
