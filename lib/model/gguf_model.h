// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_GGUF_MODEL_H_
#define INCIPIT_MODEL_GGUF_MODEL_H_

#include "model/config.h"
#include "model/gguf_metadata.h"
#include "model/tensor_names.h"
#include "model/tensor_source.h"
#include "text/tokenizer.h"

namespace incipit::model {

/// What a GGUF file calls the tensors of a model.
const TensorNames& gguf_names(const ModelConfig& config);

/// What a GGUF file's metadata and tensors say about its model. Both throw Error{kModelUnreadable},
/// also for a model that incipit would compute wrongly.
ModelConfig read_gguf_config(const GgufMetadata& metadata, const TensorSource& tensors);
text::TokenizerSpec read_gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_GGUF_MODEL_H_
