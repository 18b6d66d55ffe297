// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/files.h"
#include "model/hugging_face.h"
#include "model/rope_frequencies.h"
#include "model/tensor_names.h"

namespace incipit::model {
namespace {

struct Family {
  std::string_view class_name;
  std::string_view architecture;
  const TensorNames& names;
};
// A Mistral computes what a LLaMA with a sliding window computes.
constexpr auto kFamilies = std::to_array<Family>({
    {"LlamaForCausalLM", "llama", kLlamaNames},
    {"MistralForCausalLM", "llama", kLlamaNames},
    {"Qwen2ForCausalLM", "qwen2", kLlamaNames},
    {"Qwen3ForCausalLM", "qwen3", kLlamaNames},
    {"Gemma3ForCausalLM", "gemma3", kGemma3Names},
    {"GPT2LMHeadModel", "gpt2", kGpt2Names},
    {"OPTForCausalLM", "opt", kOptNames},
    {"BloomForCausalLM", "bloom", kBloomNames},
});

struct ActivationName {
  std::string_view name;
  device::Activation activation;
};
constexpr auto kActivations = std::to_array<ActivationName>({
    {"silu", device::Activation::kSilu},
    {"swish", device::Activation::kSilu},
    {"gelu_new", device::Activation::kGeluTanh},
    {"gelu_fast", device::Activation::kGeluTanh},
    {"gelu_pytorch_tanh", device::Activation::kGeluTanh},
    {"relu", device::Activation::kRelu},
});

class ConfigReader {
 public:
  ConfigReader(const JsonObject& json, const TensorSource& tensors)
      : json_(json), tensors_(tensors) {}

  ModelConfig read() {
    family_ = &family();
    config_.architecture = family_->architecture;
    refuse_unsupported();
    if (config_.architecture == "gpt2") {
      read_gpt2();
    } else if (config_.architecture == "opt") {
      read_opt();
    } else if (config_.architecture == "bloom") {
      read_bloom();
    } else {
      read_llama_kind();
    }
    return std::move(config_);
  }

 private:
  const Family& family() const {
    const std::vector<std::string> names = json_.find_texts("architectures");
    const std::string name = names.size() == 1 ? names.front() : "";
    std::string known;
    for (const Family& family : kFamilies) {
      if (family.class_name == name) return family;
      known += (known.empty() ? "" : ", ") + std::string(family.class_name);
    }
    fail(json_.file(), "the architecture '" + name + "' is not supported; incipit runs " + known);
  }

  [[noreturn]] void refuse(const std::string& option) const {
    fail(json_.file(), "the model uses " + option + ", which incipit does not support");
  }
  // Options that change what is computed, and the value that changes nothing.
  void refuse_flag(const char* key, bool harmless = false) const {
    if (json_.find_flag(key).value_or(harmless) == harmless) return;
    refuse(std::string(key) + (harmless ? " = false" : ""));
  }

  void refuse_unsupported() const {
    if (json_.find_object("quantization_config")) {
      refuse("quantization_config (take the original weights or a GGUF file)");
    }
    for (const char* key : {"num_experts", "num_local_experts", "n_routed_experts"}) {
      if (json_.find_count(key).value_or(0) > 1) refuse(std::string(key) + " (experts)");
    }
    refuse_flag("add_cross_attention");
  }

  void read_activation(const char* key, const char* usual) {
    const std::string name = json_.find_text(key).value_or(usual);
    for (const ActivationName& known : kActivations) {
      if (known.name != name) continue;
      config_.activation = known.activation;
      return;
    }
    refuse(std::string(key) + " '" + name + "'");
  }

  void read_common(const char* layers, const char* width, const char* heads) {
    config_.name = json_.find_text("_name_or_path").value_or("");
    config_.vocabulary = json_.get_count("vocab_size");
    config_.layers = json_.get_count(layers);
    config_.width = json_.get_count(width);
    config_.heads = json_.get_count(heads);
    config_.kv_heads = config_.heads;
    config_.head_dim = config_.heads == 0 ? 0 : config_.width / config_.heads;
    const bool output = tensors_.find(std::string(family_->names.output) + ".weight") != nullptr;
    config_.tied_output = json_.find_flag("tie_word_embeddings").value_or(!output);
  }

  // Heads of these families have equal parts of the width.
  void check_parts() const {
    check_config(config_, json_.file());
    if (config_.heads * config_.head_dim != config_.width) {
      fail(json_.file(), "a width of " + std::to_string(config_.width) + " cannot be shared by " +
                             std::to_string(config_.heads) + " heads; the file is damaged");
    }
  }

  // LayerNorm, biases everywhere, no gate.
  void be_biased() {
    config_.norm = Norm::kLayer;
    config_.qkv_bias = config_.output_bias = config_.ffn_bias = true;
    config_.gated_ffn = false;
  }

  void read_gpt2() {
    be_biased();
    read_common("n_layer", "n_embd", "n_head");
    config_.context = json_.get_count("n_positions");
    config_.ffn_width = json_.find_count("n_inner").value_or(4 * config_.width);
    config_.norm_epsilon = epsilon("layer_norm_epsilon");
    config_.positions = Positions::kLearned;
    read_activation("activation_function", "gelu_new");
    refuse_flag("scale_attn_weights", true);
    refuse_flag("scale_attn_by_inverse_layer_idx");
    check_parts();
  }

  void read_opt() {
    be_biased();
    read_common("num_hidden_layers", "hidden_size", "num_attention_heads");
    config_.context = json_.get_count("max_position_embeddings");
    config_.ffn_width = json_.get_count("ffn_dim");
    config_.embedding_width = json_.find_count("word_embed_proj_dim").value_or(config_.width);
    config_.norm_epsilon = 1e-5f;
    config_.positions = Positions::kLearned;
    config_.position_offset = 2;
    const bool before = json_.find_flag("do_layer_norm_before").value_or(true);
    config_.norm_place = before ? NormPlace::kBefore : NormPlace::kAfter;
    config_.final_norm = before && !json_.find_flag("_remove_final_layer_norm").value_or(false);
    read_activation("activation_function", "relu");
    refuse_flag("enable_bias", true);
    refuse_flag("layer_norm_elementwise_affine", true);
    check_parts();
  }

  void read_bloom() {
    be_biased();
    const bool older = json_.find_count("n_embed").has_value();
    const bool newer = json_.find_count("num_attention_heads").has_value();
    const char* const layers =
        json_.find_count("num_hidden_layers").has_value() ? "num_hidden_layers" : "n_layer";
    read_common(layers, older ? "n_embed" : "hidden_size",
                newer ? "num_attention_heads" : "n_head");
    config_.context = json_.find_count("seq_length").value_or(2048);
    config_.ffn_width = 4 * config_.width;
    config_.norm_epsilon = epsilon("layer_norm_epsilon");
    config_.positions = Positions::kAlibi;
    config_.embedding_norm = true;
    config_.activation = device::Activation::kGeluTanh;
    refuse_flag("apply_residual_connection_post_layernorm");
    check_parts();
  }

  void read_llama_kind() {
    const bool gemma = config_.architecture == "gemma3";
    read_common("num_hidden_layers", "hidden_size", "num_attention_heads");
    config_.context = json_.get_count("max_position_embeddings");
    config_.ffn_width = json_.get_count("intermediate_size");
    config_.kv_heads = json_.find_count("num_key_value_heads").value_or(config_.heads);
    config_.norm_epsilon = epsilon("rms_norm_eps");
    config_.head_dim = json_.find_count("head_dim").value_or(gemma ? 256 : config_.head_dim);
    config_.qkv_bias = config_.architecture == "qwen2";
    config_.qk_norm = gemma || config_.architecture == "qwen3";
    if (gemma) {
      read_gemma();
    } else {
      read_activation("hidden_act", "silu");
    }
    if (json_.find_flag("attention_bias").value_or(false)) {
      refuse("attention_bias, which puts a bias on o_proj");
    }
    refuse_flag("mlp_bias");
    if (json_.find_number("partial_rotary_factor").value_or(1.0) != 1.0) {
      refuse("partial_rotary_factor");
    }
    check_config(config_, json_.file());
    if (gemma) {
      read_two_ropes();
    } else {
      read_rope();
    }
    read_window();
  }

  float epsilon(const char* key) const { return static_cast<float>(json_.get_number(key)); }

  void read_gemma() {
    config_.norm_place = NormPlace::kAround;
    read_activation("hidden_activation", "gelu_pytorch_tanh");
    refuse_flag("use_bidirectional_attention");
    const TensorInfo* const table = tensors_.find("model.embed_tokens.weight");
    config_.embedding_scale =
        embedding_scale(config_.width, table ? table->type : tensor::DType::kF32);
    const double scalar = json_.find_number("query_pre_attn_scalar").value_or(256.0);
    config_.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
    config_.attention_soft_cap = soft_cap("attn_logit_softcapping");
    config_.logit_soft_cap = soft_cap("final_logit_softcapping");
  }

  float soft_cap(const char* key) const {
    return static_cast<float>(json_.find_number(key).value_or(0.0));
  }

  // Which layers have a window by layer_types; empty: they say of none. `any`: there is one.
  std::vector<std::uint8_t> windows_by_type(bool any) const {
    std::vector<std::uint8_t> windowed;
    for (const std::string& type : json_.find_texts("layer_types")) {
      if (type != "full_attention" && type != "sliding_attention") {
        refuse("layers of the type '" + type + "'");
      }
      windowed.push_back(type == "sliding_attention" ? 1 : 0);
    }
    if (std::find(windowed.begin(), windowed.end(), 1) == windowed.end()) return {};
    if (!any) refuse("layers with a sliding window that it does not have");
    if (windowed.size() != config_.layers) {
      json_.wrong("layer_types", "names " + std::to_string(windowed.size()) + " layers of " +
                                     std::to_string(config_.layers));
    }
    return windowed;
  }

  // Likewise where there are no layer_types.
  std::vector<std::uint8_t> windows_by_family() const {
    if (config_.architecture == "gemma3") {
      const std::uint64_t period = json_.find_count("sliding_window_pattern").value_or(6);
      if (period == 0) json_.wrong("sliding_window_pattern", "is 0");
      return window_pattern(config_.layers, period);
    }
    std::vector<std::uint8_t> windowed(config_.layers, 1);
    if (config_.architecture != "llama") {  // Qwen's first layers see all keys
      const std::uint64_t whole = json_.find_count("max_window_layers").value_or(28);
      std::fill_n(windowed.begin(), std::min<std::uint64_t>(whole, config_.layers),
                  std::uint8_t{0});
    }
    return windowed;
  }

  void read_window() {
    const auto window = json_.find_count("sliding_window");
    const bool qwen = config_.architecture == "qwen2" || config_.architecture == "qwen3";
    const bool in_use = json_.find_flag("use_sliding_window").value_or(!qwen);
    std::vector<std::uint8_t> windowed = windows_by_type(window && in_use);
    if (windowed.empty() && json_.find_texts("layer_types").empty()) windowed = windows_by_family();
    if (!window || !in_use) {
      if (config_.architecture == "gemma3" && !windowed.empty()) json_.missing("sliding_window");
      return;
    }
    if (*window == 0) json_.wrong("sliding_window", "is 0");
    if (family_->class_name == "LlamaForCausalLM" && *window < config_.context) {
      refuse("a sliding window, which a LlamaForCausalLM has not");
    }
    set_window(config_, *window, std::move(windowed));
  }

  // Newer files hold all of RoPE in rope_parameters, older ones its scaling in rope_scaling.
  void read_rope() {
    std::optional<double> base = json_.find_number("rope_theta");
    RopeScaling scaling;
    for (const char* key : {"rope_scaling", "rope_parameters"}) {
      const auto rope = json_.find_object(key);
      if (!rope) continue;
      scaling = read_scaling(*rope);
      if (const auto theta = rope->find_number("rope_theta")) base = theta;
    }
    config_.rope_frequencies = rope_frequencies(base.value_or(10000.0), config_.head_dim, scaling);
  }

  // Layers with a window have a base of their own, and no scaling.
  void read_two_ropes() {
    double base = json_.find_number("rope_theta").value_or(1e6);
    double local_base = json_.find_number("rope_local_base_freq").value_or(1e4);
    RopeScaling scaling, local_scaling;
    if (const auto older = json_.find_object("rope_scaling")) scaling = read_scaling(*older);
    if (const auto newer = json_.find_object("rope_parameters")) {
      const auto read = [&](const char* key, double& theta, RopeScaling& to) {
        const auto rope = newer->find_object(key);
        if (!rope) newer->missing(key);
        to = read_scaling(*rope);
        theta = rope->find_number("rope_theta").value_or(theta);
      };
      read("full_attention", base, scaling);
      read("sliding_attention", local_base, local_scaling);
    }
    config_.rope_frequencies = rope_frequencies(base, config_.head_dim, scaling);
    config_.local_rope_frequencies = rope_frequencies(local_base, config_.head_dim, local_scaling);
  }

  RopeScaling read_scaling(const JsonObject& rope) const {
    for (const auto& [key, value] : rope.members().items()) {
      if (value.is_object()) refuse("RoPE parameters of its own for '" + key + "'");
    }
    if (rope.find_number("partial_rotary_factor").value_or(1.0) != 1.0) {
      refuse("partial_rotary_factor");
    }
    std::optional<std::string> type = rope.find_text("rope_type");
    if (!type) type = rope.find_text("type");
    RopeScaling scaling;
    if (type == "linear") {
      scaling.kind = RopeScaling::Kind::kLinear;
      scaling.factor = rope.get_number("factor");
    } else if (type == "llama3") {
      scaling.kind = RopeScaling::Kind::kLlama3;
      scaling.factor = rope.get_number("factor");
      scaling.low = rope.get_number("low_freq_factor");
      scaling.high = rope.get_number("high_freq_factor");
      scaling.original_context = rope.get_number("original_max_position_embeddings");
    } else if (type && type != "default") {
      refuse("RoPE scaling of type '" + *type + "'");
    } else if (!type && rope.find_number("factor")) {
      refuse("RoPE scaling without a type");
    }
    return scaling;
  }

  const JsonObject& json_;
  const TensorSource& tensors_;
  const Family* family_ = nullptr;
  ModelConfig config_;
};

}  // namespace

ModelConfig read_hugging_face_config(const JsonObject& config, const TensorSource& tensors) {
  return ConfigReader(config, tensors).read();
}

const TensorNames& hugging_face_names(const ModelConfig& config) {
  const auto family = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& known) {
    return known.architecture == config.architecture;
  });
  INCIPIT_CHECK(family != kFamilies.end());
  return family->names;
}

}  // namespace incipit::model
