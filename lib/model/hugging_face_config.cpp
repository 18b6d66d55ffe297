// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/files.h"
#include "model/hugging_face.h"
#include "model/rope_frequencies.h"

namespace incipit::model {
namespace {

struct ClassName {
  std::string_view name;
  std::string_view architecture;
};
// A Mistral without its sliding window computes what a LLaMA computes.
constexpr auto kClasses = std::to_array<ClassName>({
    {"LlamaForCausalLM", "llama"},
    {"MistralForCausalLM", "llama"},
    {"Qwen2ForCausalLM", "qwen2"},
    {"Qwen3ForCausalLM", "qwen3"},
});

class ConfigReader {
 public:
  ConfigReader(const JsonObject& json, const TensorSource& tensors)
      : json_(json), tensors_(tensors) {}

  ModelConfig read() {
    config_.architecture = architecture();
    refuse_unsupported();
    read_sizes();
    config_.qkv_bias = config_.architecture == "qwen2";
    config_.qk_norm = config_.architecture == "qwen3";
    config_.tied_output =
        json_.find_flag("tie_word_embeddings").value_or(tensors_.find("lm_head.weight") == nullptr);
    config_.rope_pairs = device::RopePairs::kHalves;
    check_config(config_, json_.file());
    read_rope();
    return std::move(config_);
  }

 private:
  std::string architecture() const {
    const std::vector<std::string> names = json_.find_texts("architectures");
    const std::string name = names.size() == 1 ? names.front() : "";
    for (const ClassName& known : kClasses) {
      if (known.name == name) return std::string(known.architecture);
    }
    fail(json_.file(), "the architecture '" + name +
                           "' is not supported; incipit runs LlamaForCausalLM, "
                           "MistralForCausalLM, Qwen2ForCausalLM and Qwen3ForCausalLM");
  }

  [[noreturn]] void refuse(const std::string& option) const {
    fail(json_.file(), "the model uses " + option + ", which incipit does not support");
  }

  void refuse_unsupported() const {
    const std::string activation = json_.find_text("hidden_act").value_or("silu");
    if (activation != "silu") refuse("hidden_act '" + activation + "'");
    if (json_.find_flag("attention_bias").value_or(false)) {
      refuse("attention_bias, which puts a bias on o_proj");
    }
    if (json_.find_flag("mlp_bias").value_or(false)) refuse("mlp_bias");
    if (json_.find_object("quantization_config")) {
      refuse("quantization_config (take the original weights or a GGUF file)");
    }
    if (json_.find_number("partial_rotary_factor").value_or(1.0) != 1.0) {
      refuse("partial_rotary_factor");
    }
    refuse_sliding_window();
  }

  // A window that is not smaller than the context never hides a key.
  void refuse_sliding_window() const {
    for (const std::string& type : json_.find_texts("layer_types")) {
      if (type != "full_attention") refuse("layers of the type '" + type + "'");
    }
    const auto window = json_.find_count("sliding_window");
    const auto in_use = json_.find_flag("use_sliding_window");
    if (window && in_use.value_or(true) && *window < json_.get_count("max_position_embeddings")) {
      refuse("a sliding window");
    }
  }

  void read_sizes() {
    config_.name = json_.find_text("_name_or_path").value_or("");
    config_.vocabulary = json_.get_count("vocab_size");
    config_.context = json_.get_count("max_position_embeddings");
    config_.layers = json_.get_count("num_hidden_layers");
    config_.width = json_.get_count("hidden_size");
    config_.ffn_width = json_.get_count("intermediate_size");
    config_.heads = json_.get_count("num_attention_heads");
    config_.kv_heads = json_.find_count("num_key_value_heads").value_or(config_.heads);
    config_.norm_epsilon = static_cast<float>(json_.get_number("rms_norm_eps"));
    config_.head_dim = json_.find_count("head_dim")
                           .value_or(config_.heads == 0 ? 0 : config_.width / config_.heads);
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
      if (rope->find_number("partial_rotary_factor").value_or(1.0) != 1.0) {
        refuse("partial_rotary_factor");
      }
    }
    config_.rope_frequencies = rope_frequencies(base.value_or(10000.0), config_.head_dim, scaling);
  }

  RopeScaling read_scaling(const JsonObject& rope) const {
    for (const auto& [key, value] : rope.members().items()) {
      if (value.is_object()) refuse("RoPE parameters of its own for '" + key + "'");
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
  ModelConfig config_;
};

}  // namespace

ModelConfig read_hugging_face_config(const JsonObject& config, const TensorSource& tensors) {
  return ConfigReader(config, tensors).read();
}

}  // namespace incipit::model
