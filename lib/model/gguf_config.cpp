// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
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
constexpr std::array<std::string_view, 11> kUnsupported = {
    "expert_count",           "expert_used_count",        "attention.sliding_window",
    "attention.clamp_kqv",    "attention.max_alibi_bias", "attention.scale",
    "attn_logit_softcapping", "final_logit_softcapping",  "logit_scale",
    "residual_scale",         "embedding_scale",
};

class ConfigReader {
 public:
  ConfigReader(const GgufMetadata& metadata, const TensorSource& tensors)
      : metadata_(metadata), tensors_(tensors) {}

  ModelConfig read() {
    config_.architecture = metadata_.get_text("general.architecture");
    if (config_.architecture != "llama" && config_.architecture != "qwen2" &&
        config_.architecture != "qwen3") {
      fail(metadata_.file(), "the architecture '" + config_.architecture +
                                 "' is not supported; incipit runs llama, qwen2 and qwen3");
    }
    refuse_unsupported();
    read_sizes();
    config_.qk_norm = config_.architecture == "qwen3";
    config_.qkv_bias = config_.architecture == "qwen2" || tensors_.find("blk.0.attn_q.bias");
    config_.tied_output = tensors_.find("output.weight") == nullptr;
    // The converter reorders q and k of LLaMA so that the pairs of a head are neighbours.
    config_.rope_pairs =
        config_.architecture == "llama" ? device::RopePairs::kAdjacent : device::RopePairs::kHalves;
    check_config(config_, metadata_.file());
    read_rope();
    return std::move(config_);
  }

 private:
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
    config_.norm_epsilon =
        static_cast<float>(metadata_.get_number(key("attention.layer_norm_rms_epsilon")));
    config_.head_dim =
        size("attention.key_length", config_.heads == 0 ? 0 : config_.width / config_.heads);
    if (size("attention.value_length", config_.head_dim) != config_.head_dim) {
      refuse("heads whose values are not as long as their keys");
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
  ModelConfig config_;
};

}  // namespace

ModelConfig read_gguf_config(const GgufMetadata& metadata, const TensorSource& tensors) {
  return ConfigReader(metadata, tensors).read();
}

}  // namespace incipit::model
