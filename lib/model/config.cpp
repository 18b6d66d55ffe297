// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "model/files.h"

namespace incipit::model {
namespace {

// The context is what sin_cos() of rope.h reaches; the other caps are a few times what the largest
// published models have.
constexpr std::size_t kMaxContext = std::size_t{1} << 20;
constexpr std::size_t kMaxVocabulary = std::size_t{1} << 21;
constexpr std::size_t kMaxLayers = 1024;
constexpr std::size_t kMaxWidth = std::size_t{1} << 17;
constexpr std::size_t kMaxHeads = 1024;
constexpr std::size_t kMaxHeadDim = 256;
constexpr std::size_t kMaxFfnWidth = std::size_t{1} << 19;

void check_size(const std::filesystem::path& file, std::size_t value, std::size_t most,
                const char* what) {
  if (value >= 1 && value <= most) return;
  fail(file, std::string("the model's ") + what + " is " + std::to_string(value) +
                 "; incipit runs models where it is 1 to " + std::to_string(most));
}

// A factor that scores, embeddings or logits are scaled or capped with.
void check_factor(const std::filesystem::path& file, float value, bool zero, const char* what) {
  if ((value > 0.0f && value <= 1e6f) || (zero && value == 0.0f)) return;
  fail(file, std::string("the model's ") + what + " is " + std::to_string(value) +
                 ", which is no positive number; the file is damaged");
}

base::Bytes bytes_of(const float& value) { return std::as_bytes(std::span(&value, 1)); }

}  // namespace

void check_config(const ModelConfig& config, const std::filesystem::path& file) {
  check_size(file, config.vocabulary, kMaxVocabulary, "vocabulary");
  check_size(file, config.context, kMaxContext, "context");
  check_size(file, config.layers, kMaxLayers, "number of layers");
  check_size(file, config.width, kMaxWidth, "width");
  check_size(file, config.heads, kMaxHeads, "number of heads");
  check_size(file, config.kv_heads, config.heads, "number of KV heads");
  check_size(file, config.head_dim, kMaxHeadDim, "head dimension");
  check_size(file, config.ffn_width, kMaxFfnWidth, "feed-forward width");
  if (config.heads % config.kv_heads != 0) {
    fail(file, std::to_string(config.heads) + " heads cannot share " +
                   std::to_string(config.kv_heads) + " KV heads evenly; the file is damaged");
  }
  if (config.head_dim % 2 != 0) {
    fail(file, "the head dimension " + std::to_string(config.head_dim) +
                   " is odd, so that RoPE has no pairs; the file is damaged");
  }
  if (config.embedding_width != 0) {
    check_size(file, config.embedding_width, kMaxWidth, "embedding width");
  }
  check_factor(file, config.embedding_scale, false, "embedding scale");
  check_factor(file, config.attention_scale, true, "attention scale");
  check_factor(file, config.attention_soft_cap, true, "soft cap of attention");
  check_factor(file, config.logit_soft_cap, true, "soft cap of logits");
  if (!(config.norm_epsilon > 0.0f && config.norm_epsilon < 1.0f)) {
    fail(file, "the epsilon of the norms is " + std::to_string(config.norm_epsilon) +
                   ", not between 0 and 1; the file is damaged");
  }
}

std::string config_fields(const ModelConfig& config) {
  // A member that is added does not compile until it is here.
  const auto& [name, architecture, vocabulary, context, layers, width, embedding_width, heads,
               kv_heads, head_dim, ffn_width, norm, norm_place, norm_epsilon, qk_norm,
               embedding_norm, final_norm, activation, gated_ffn, qkv_bias, output_bias, ffn_bias,
               tied_output, embedding_scale, attention_scale, attention_soft_cap, logit_soft_cap,
               positions, position_offset, rope_pairs, rope_frequencies, local_rope_frequencies,
               window, windowed_layers] = config;
  static_cast<void>(name);
  base::FieldWriter fields;
  fields.add("architecture", architecture)
      .add("vocabulary", vocabulary)
      .add("context", context)
      .add("layers", layers)
      .add("width", width)
      .add("embedding width", embedding_width)
      .add("heads", heads)
      .add("kv heads", kv_heads)
      .add("head dim", head_dim)
      .add("ffn width", ffn_width)
      .add("norm", static_cast<std::uint64_t>(norm))
      .add("norm place", static_cast<std::uint64_t>(norm_place))
      .add("norm epsilon", bytes_of(norm_epsilon))
      .add("qk norm", std::uint64_t{qk_norm})
      .add("embedding norm", std::uint64_t{embedding_norm})
      .add("final norm", std::uint64_t{final_norm})
      .add("activation", static_cast<std::uint64_t>(activation))
      .add("gated ffn", std::uint64_t{gated_ffn})
      .add("qkv bias", std::uint64_t{qkv_bias})
      .add("output bias", std::uint64_t{output_bias})
      .add("ffn bias", std::uint64_t{ffn_bias})
      .add("tied output", std::uint64_t{tied_output})
      .add("embedding scale", bytes_of(embedding_scale))
      .add("attention scale", bytes_of(attention_scale))
      .add("attention soft cap", bytes_of(attention_soft_cap))
      .add("logit soft cap", bytes_of(logit_soft_cap))
      .add("positions", static_cast<std::uint64_t>(positions))
      .add("position offset", position_offset)
      .add("rope pairs", static_cast<std::uint64_t>(rope_pairs))
      .add("rope frequencies", std::as_bytes(std::span(rope_frequencies)))
      .add("local rope frequencies", std::as_bytes(std::span(local_rope_frequencies)))
      .add("window", std::uint64_t{window})
      .add("windowed layers", std::as_bytes(std::span(windowed_layers)));
  return fields.str();
}

void set_window(ModelConfig& config, std::uint64_t window, std::vector<std::uint8_t> layers) {
  if (window >= config.context && config.local_rope_frequencies.empty()) return;
  if (std::find(layers.begin(), layers.end(), 1) == layers.end()) return;
  config.window = static_cast<std::uint32_t>(std::min<std::uint64_t>(window, config.context));
  config.windowed_layers = std::move(layers);
}

std::vector<std::uint8_t> window_pattern(std::size_t layers, std::size_t period) {
  std::vector<std::uint8_t> windowed(layers, 1);
  for (std::size_t i = period; i <= layers; i += period) windowed[i - 1] = 0;
  return windowed;
}

float embedding_scale(std::size_t width, tensor::DType type) noexcept {
  const auto scale = static_cast<float>(std::sqrt(static_cast<double>(width)));
  if (type == tensor::DType::kBF16) return tensor::bf16_to_f32(tensor::f32_to_bf16(scale));
  if (type == tensor::DType::kF16) return tensor::f16_to_f32(tensor::f32_to_f16(scale));
  return scale;
}

std::vector<float> alibi_slopes(std::size_t heads) {
  std::vector<float> slopes;
  // The powers 1, 1 + step, ... of 2^(-8 / parts), whose root is taken without libm. The
  // base is rounded to f32, as transformers have it.
  const auto add = [&](std::size_t parts, std::size_t step, std::size_t count) {
    double root = 1.0 / 256.0;
    for (std::size_t n = parts; n > 1; n /= 2) root = std::sqrt(root);
    const auto base = static_cast<double>(static_cast<float>(root));
    double power = base;
    for (std::size_t i = 0; i < count; ++i) {
      slopes.push_back(static_cast<float>(power));
      for (std::size_t j = 0; j < step; ++j) power *= base;
    }
  };
  const std::size_t whole = std::bit_floor(heads);
  add(whole, 1, whole);
  if (heads > whole) add(2 * whole, 2, heads - whole);
  return slopes;
}

}  // namespace incipit::model
