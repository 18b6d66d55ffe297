// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/files.h"
#include "model/gguf_model.h"
#include "model/rope_frequencies.h"

namespace incipit::model {
namespace {

// Options of other models that share an architecture's name: supported where they say that they
// are not in use.
constexpr std::array<std::string_view, 8> kUnsupported = {
    "expert_count", "expert_used_count", "attention.clamp_kqv",   "attention.max_alibi_bias",
    "logit_scale",  "residual_scale",    "use_parallel_residual", "attention.shared_kv_layers",
};

constexpr std::array<std::string_view, 6> kArchitectures = {"llama",  "qwen2", "qwen3",
                                                            "gemma3", "gpt2",  "bloom"};

class ConfigReader {
 public:
  ConfigReader(const GgufMetadata& metadata, const TensorSource& tensors)
      : metadata_(metadata), tensors_(tensors) {}

  ModelConfig read() {
    config_.architecture = metadata_.get_text("general.architecture");
    if (std::find(kArchitectures.begin(), kArchitectures.end(), config_.architecture) ==
        kArchitectures.end()) {
      fail(metadata_.file(),
           "the architecture '" + config_.architecture +
               "' is not supported; incipit runs llama, qwen2, qwen3, gemma3, gpt2 and bloom");
    }
    refuse_unsupported();
    fused_ = is("gpt2") || is("bloom");
    read_sizes();
    if (fused_) {
      be_biased();
    } else {
      be_llama_kind();
    }
    config_.tied_output = tensors_.find("output.weight") == nullptr;
    check_config(config_, metadata_.file());
    if (config_.positions == Positions::kRope) read_rope();
    read_window();
    return std::move(config_);
  }

 private:
  bool is(std::string_view architecture) const { return config_.architecture == architecture; }

  // LayerNorm, biases everywhere, no gate.
  void be_biased() {
    config_.norm = Norm::kLayer;
    config_.qkv_bias = config_.output_bias = config_.ffn_bias = true;
    config_.gated_ffn = false;
    config_.activation = device::Activation::kGeluTanh;
    config_.positions = is("bloom") ? Positions::kAlibi : Positions::kLearned;
    config_.embedding_norm = is("bloom");
  }

  void be_llama_kind() {
    config_.qk_norm = is("qwen3") || is("gemma3");
    config_.qkv_bias = is("qwen2") || tensors_.find("blk.0.attn_q.bias") != nullptr;
    // The converter reorders q and k of LLaMA so that the pairs of a head are neighbours.
    config_.rope_pairs = is("llama") ? device::RopePairs::kAdjacent : device::RopePairs::kHalves;
    config_.attention_scale = number("attention.scale");
    config_.attention_soft_cap = number("attn_logit_softcapping");
    config_.logit_soft_cap = number("final_logit_softcapping");
    if (is("gemma3")) be_gemma();
  }

  void be_gemma() {
    config_.norm_place = NormPlace::kAround;
    config_.activation = device::Activation::kGeluTanh;
    const TensorInfo& table = *tensors_.find("token_embd.weight");
    config_.embedding_scale = embedding_scale(config_.width, table.type);
    // Files do not hold the scale. It is that of a head but in the largest model, the one with 62
    // layers, whose heads are narrower than their part of the width.
    if (config_.layers == 62 && config_.heads > 0 && config_.attention_scale == 0.0f) {
      const auto part = static_cast<double>(config_.width / config_.heads);
      config_.attention_scale = static_cast<float>(1.0 / std::sqrt(part));
    }
  }

  float number(std::string_view name) const {
    return static_cast<float>(metadata_.find_number(key(name)).value_or(0.0));
  }

  std::string key(std::string_view name) const {
    return config_.architecture + '.' + std::string(name);
  }

  std::size_t size(std::string_view name) const { return metadata_.get_count(key(name)); }
  std::size_t size(std::string_view name, std::size_t otherwise) const {
    return metadata_.find_count(key(name)).value_or(otherwise);
  }

  void refuse_unsupported() const {
    const std::string_view kind = metadata_.find_text("general.type").value_or("model");
    if (kind != "model") fail(metadata_.file(), "this is no model but: " + std::string(kind));
    for (const std::string_view name : kUnsupported) {
      if (metadata_.find_number(key(name)).value_or(0.0) != 0.0) refuse(key(name));
    }
    if (!metadata_.find_flag(key("attention.causal")).value_or(true)) {
      refuse(key("attention.causal") + " = false");
    }
    if (metadata_.find_count("split.count").value_or(1) > 1) {
      fail(metadata_.file(),
           "this is one part of a split model; merge the parts first "
           "(llama-gguf-split --merge)");
    }
  }

  [[noreturn]] void refuse(const std::string& option) const {
    fail(metadata_.file(), "the model uses '" + option + "', which incipit does not support");
  }

  void read_sizes() {
    config_.name = metadata_.find_text("general.name").value_or("");
    config_.vocabulary = vocabulary();
    config_.context = size("context_length");
    config_.layers = size("block_count");
    config_.width = size("embedding_length");
    config_.ffn_width = size("feed_forward_length");
    config_.heads = size("attention.head_count");
    config_.kv_heads = size("attention.head_count_kv", config_.heads);
    config_.norm_epsilon = static_cast<float>(metadata_.get_number(
        key(fused_ ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon")));
    config_.head_dim =
        size("attention.key_length", config_.heads == 0 ? 0 : config_.width / config_.heads);
    if (size("attention.value_length", config_.head_dim) != config_.head_dim) {
      refuse("heads whose values are not as long as their keys");
    }
    if (metadata_.find_number(key("embedding_scale")).value_or(0.0) != 0.0) {
      refuse(key("embedding_scale"));
    }
  }

  // Rows of the embedding, which may be more than there are tokens.
  std::size_t vocabulary() const {
    const TensorInfo* embedding = tensors_.find("token_embd.weight");
    if (embedding == nullptr) {
      fail(metadata_.file(), "tensor 'token_embd.weight' is missing; the model is incomplete");
    }
    return embedding->shape.front();
  }

  // A LLaMA with a window is a Mistral. Gemma's files name the window, and the layers that have it
  // only where they are not those of all its models.
  void read_window() {
    const auto window = metadata_.find_number(key("attention.sliding_window"));
    if (!window || *window == 0.0) {
      if (!is("gemma3")) return;
      size("attention.sliding_window");  // is it missing?
      fail(metadata_.file(),
           "'" + key("attention.sliding_window") + "' is 0, but the model's layers need a window");
    }
    if (!is("llama") && !is("gemma3")) refuse(key("attention.sliding_window"));
    std::size_t period = 6;
    if (metadata_.has(key("attention.sliding_window_pattern"))) {
      period = size("attention.sliding_window_pattern");
      if (period == 0) refuse(key("attention.sliding_window_pattern") + " = 0");
    }
    set_window(config_, size("attention.sliding_window"),
               is("gemma3") ? window_pattern(config_.layers, period)
                            : std::vector<std::uint8_t>(config_.layers, 1));
  }

  void read_rope() {
    if (size("rope.dimension_count", config_.head_dim) != config_.head_dim) {
      refuse("RoPE over a part of each head");
    }
    RopeScaling scaling;
    const auto type = metadata_.find_text(key("rope.scaling.type"));
    if (type == "linear") {
      scaling.kind = RopeScaling::Kind::kLinear;
      scaling.factor = metadata_.get_number(key("rope.scaling.factor"));
    } else if (type && type != "none") {
      refuse("RoPE scaling of type '" + std::string(*type) + "'");
    } else if (const auto factor = metadata_.find_number(key("rope.scale_linear"))) {
      scaling = {.kind = RopeScaling::Kind::kLinear, .factor = *factor};
    }
    const double base = metadata_.find_number(key("rope.freq_base")).value_or(10000.0);
    config_.rope_frequencies = rope_frequencies(base, config_.head_dim, scaling);
    if (is("gemma3")) {  // layers with a window have a base of their own, and no scaling
      const double local = metadata_.find_number(key("rope.freq_base_swa")).value_or(10000.0);
      config_.local_rope_frequencies = rope_frequencies(local, config_.head_dim);
    }
    apply_factors();
  }

  // LLaMA-3's scaling, worked out by the converter.
  void apply_factors() {
    const TensorInfo* tensor = tensors_.find("rope_freqs.weight");
    if (tensor == nullptr) return;
    std::vector<float> factors(config_.rope_frequencies.size());
    if (tensor->type != tensor::DType::kF32 || tensor->bytes != factors.size() * sizeof(float)) {
      fail(metadata_.file(), "tensor 'rope_freqs.weight' is not " + std::to_string(factors.size()) +
                                 " F32 values; the file is damaged");
    }
    tensors_.read(*tensor, 0, std::as_writable_bytes(std::span(factors)));
    divide_frequencies(config_.rope_frequencies, factors);
  }

  const GgufMetadata& metadata_;
  const TensorSource& tensors_;
  bool fused_ = false;
  ModelConfig config_;
};

}  // namespace

ModelConfig read_gguf_config(const GgufMetadata& metadata, const TensorSource& tensors) {
  return ConfigReader(metadata, tensors).read();
}

const TensorNames& gguf_names(const ModelConfig& config) {
  const bool fused = config.architecture == "gpt2" || config.architecture == "bloom";
  return fused ? kGgufFusedNames : kGgufNames;
}

}  // namespace incipit::model
