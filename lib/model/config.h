// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_CONFIG_H_
#define INCIPIT_MODEL_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "device/device.h"
#include "tensor/dtype.h"

namespace incipit::model {

/// How the rows of a batch learn where they stand. It is also what the K of a token depends on
/// besides the tokens up to it.
enum class Positions {
  kRope,     // q and k of each head are turned by the position
  kLearned,  // a row of a table is added to the embedding
  kAlibi,    // scores fall with the distance to the key; K knows nothing of its position
};

enum class Norm {
  kRms,    // by the root mean square, times a weight
  kLayer,  // less the mean, by the standard deviation, times a weight, plus a bias
};

/// Where a layer's two branches (attention, feed-forward) are normalised.
enum class NormPlace {
  kBefore,  // x += branch(norm(x))
  kAround,  // x += norm'(branch(norm(x)))
  kAfter,   // x = norm(x + branch(x))
};

/// What a model is, as data: one forward pass serves every family. The initial values are those of
/// the LLaMA kind.
struct ModelConfig {
  std::string name = {};          // as the file calls it; may be empty
  std::string architecture = {};  // as GGUF files call the family: "llama", "gemma3"
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // tokens that the model was trained for
  std::size_t layers = 0;
  std::size_t width = 0;            // of the residual stream
  std::size_t embedding_width = 0;  // where matrices lead from there to width and back; 0: width
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;  // even, at most 256
  std::size_t ffn_width = 0;

  Norm norm = Norm::kRms;
  NormPlace norm_place = NormPlace::kBefore;
  float norm_epsilon = 1e-5f;
  bool qk_norm = false;         // RMSNorm of each head of q and k before RoPE
  bool embedding_norm = false;  // a norm of the embedding, before the first layer
  bool final_norm = true;       // a norm behind the last layer

  device::Activation activation = device::Activation::kSilu;
  bool gated_ffn = true;     // activation(gate x) * (up x), else activation(up x)
  bool qkv_bias = false;     // on the products for q, k and v
  bool output_bias = false;  // on that behind attention
  bool ffn_bias = false;     // on those of the feed-forward branch
  bool tied_output = false;  // the output matrix is the embedding

  float embedding_scale = 1.0f;     // what embeddings are multiplied by
  float attention_scale = 0.0f;     // of q.k; 0: 1 / sqrt(head_dim)
  float attention_soft_cap = 0.0f;  // cap * tanh(score / cap); 0: none
  float logit_soft_cap = 0.0f;      // likewise, of the logits

  Positions positions = Positions::kRope;
  std::size_t position_offset = 0;  // rows of a learned table in front of position 0
  device::RopePairs rope_pairs = device::RopePairs::kHalves;
  // [half] radians per position, scaling applied; half <= head_dim / 2. The local ones are those of
  // the layers with a window; empty: the same.
  std::vector<float> rope_frequencies = {};
  std::vector<float> local_rope_frequencies = {};

  // In the layers with a 1 a row sees the last `window` keys, itself included. Empty: in none.
  // Where these layers have frequencies of their own, a window may be as long as the context.
  std::uint32_t window = 0;
  std::vector<std::uint8_t> windowed_layers = {};

  bool projects_embedding() const noexcept {
    return embedding_width != 0 && embedding_width != width;
  }
  bool is_windowed(std::size_t layer) const noexcept {
    return !windowed_layers.empty() && windowed_layers[layer] != 0;
  }
  /// Keys that a row of the layer sees; 0: all.
  std::uint32_t window_of(std::size_t layer) const noexcept {
    return is_windowed(layer) ? window : 0;
  }
  /// Whether the layer turns by local_rope_frequencies.
  bool has_local_rope(std::size_t layer) const noexcept {
    return is_windowed(layer) && !local_rope_frequencies.empty();
  }
};

/// Checks what a file says about its model: every size against a cap, so that sums and products of
/// a few of them fit 64 bits, and all of them against each other. Throws Error{kModelUnreadable}.
void check_config(const ModelConfig& config, const std::filesystem::path& file);

/// All of a config but the model's name, as tagged, length-prefixed fields: what changes one of
/// them may change K and V, so KV must not be shared over it.
std::string config_fields(const ModelConfig& config);

/// Gives layers a window. One that is not smaller than the context hides nothing: it is left out,
/// or cut to the context where its layers have a RoPE of their own, which must be set before.
void set_window(ModelConfig& config, std::uint64_t window, std::vector<std::uint8_t> layers);

/// [layers] every `period`-th layer has no window, the others have: 1 1 1 1 1 0 for a period of 6.
std::vector<std::uint8_t> window_pattern(std::size_t layers, std::size_t period);

/// What Gemma multiplies embeddings by: sqrt(width) in the type that they are stored in.
float embedding_scale(std::size_t width, tensor::DType type) noexcept;

/// [heads] how fast each head's scores fall with the distance to the key (ALiBi, Press et al.
/// 2021): 2^(-8 i / n) for the first n heads, n the largest power of two, and the odd steps between
/// these for the others.
std::vector<float> alibi_slopes(std::size_t heads);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_CONFIG_H_
