// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_WEIGHTS_H_
#define INCIPIT_MODEL_WEIGHTS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "base/hash.h"
#include "device/device.h"

namespace incipit::model {

// Matrices are [outputs, inputs]. Vectors are f32 in device memory; an absent one is an empty
// Buffer.

struct LayerWeights {
  device::Buffer attention_norm;             // [width]
  std::unique_ptr<device::Weight> q, k, v;   // [heads|kv_heads * head_dim, width]
  device::Buffer q_bias, k_bias, v_bias;     // [heads|kv_heads * head_dim]
  device::Buffer q_norm, k_norm;             // [head_dim]
  std::unique_ptr<device::Weight> output;    // [width, heads * head_dim]
  device::Buffer ffn_norm;                   // [width]
  std::unique_ptr<device::Weight> gate, up;  // [ffn_width, width]
  std::unique_ptr<device::Weight> down;      // [width, ffn_width]
};

struct ModelWeights {
  std::unique_ptr<device::Weight> embedding;  // [vocabulary, width]
  std::vector<LayerWeights> layers;
  device::Buffer final_norm;               // [width]
  std::unique_ptr<device::Weight> output;  // [vocabulary, width]; null: the embedding
  std::size_t parameters = 0;
  base::Digest128 digest = {};  // of all tensors' names, types, shapes and bytes, in name order
};

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_WEIGHTS_H_
