// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_WEIGHTS_H_
#define INCIPIT_MODEL_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "device/device.h"

namespace incipit::model {

// Matrices are [outputs, inputs]. Vectors are f32 in device memory. What a model lacks is an empty
// Buffer or a null matrix.

struct NormWeights {
  device::Buffer weight, bias;  // [width], or [head_dim] for q and k; a bias in Norm::kLayer only
};

struct LayerWeights {
  NormWeights attention_norm, after_attention_norm;
  std::unique_ptr<device::Weight> q, k, v;  // [heads|kv_heads * head_dim, width]
  device::Buffer q_bias, k_bias, v_bias;    // [heads|kv_heads * head_dim]
  NormWeights q_norm, k_norm;
  std::unique_ptr<device::Weight> output;  // [width, heads * head_dim]
  device::Buffer output_bias;              // [width]
  NormWeights ffn_norm, after_ffn_norm;
  std::unique_ptr<device::Weight> gate, up;  // [ffn_width, width]
  std::unique_ptr<device::Weight> down;      // [width, ffn_width]
  device::Buffer up_bias, down_bias;         // [ffn_width], [width]
};

struct ModelWeights {
  std::unique_ptr<device::Weight> embedding;    // [vocabulary, embedding width]
  std::unique_ptr<device::Weight> positions;    // [context + offset, width]
  std::unique_ptr<device::Weight> project_in;   // [width, embedding width]
  std::unique_ptr<device::Weight> project_out;  // [embedding width, width]
  NormWeights embedding_norm, final_norm;
  std::vector<LayerWeights> layers;
  std::unique_ptr<device::Weight> output;  // [vocabulary, embedding width]; null: the embedding
  std::size_t parameters = 0;
  // Of the names, types, shapes and bytes of the tensors that are used, in name order, and of which
  // part of a tensor each weight is.
  base::Digest128 digest = {};
};

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_WEIGHTS_H_
