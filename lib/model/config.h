// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_CONFIG_H_
#define INCIPIT_MODEL_CONFIG_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "device/device.h"

namespace incipit::model {

/// What a model is, as data: one forward pass serves every family of the LLaMA kind.
struct ModelConfig {
  std::string name = {};          // as the file calls it; may be empty
  std::string architecture = {};  // "llama", "qwen2", "qwen3"
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // tokens that the model was trained for
  std::size_t layers = 0;
  std::size_t width = 0;  // of the residual stream
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;  // even, at most 256
  std::size_t ffn_width = 0;
  float norm_epsilon = 1e-5f;
  bool qkv_bias = false;     // Qwen2
  bool qk_norm = false;      // Qwen3: RMSNorm of each head before RoPE
  bool tied_output = false;  // the output matrix is the embedding
  device::RopePairs rope_pairs = device::RopePairs::kHalves;
  // [half] radians per position, LLaMA-3 scaling applied; half <= head_dim / 2.
  std::vector<float> rope_frequencies = {};
};

/// Checks what a file says about its model: every size against a cap, so that sums and products of
/// a few of them fit 64 bits, and all of them against each other. Throws Error{kModelUnreadable}.
void check_config(const ModelConfig& config, const std::filesystem::path& file);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_CONFIG_H_
