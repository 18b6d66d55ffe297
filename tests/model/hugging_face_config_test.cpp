// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/hugging_face.h"
#include "support/catch.h"
#include "support/memory_file.h"
#include "support/unreadable.h"

namespace incipit::model {
namespace {

using nlohmann::json;
using test::check_unreadable;

json llama() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"hidden_act", "silu"},
          {"hidden_size", 2048},
          {"intermediate_size", 8192},
          {"max_position_embeddings", 131072},
          {"num_attention_heads", 32},
          {"num_hidden_layers", 16},
          {"num_key_value_heads", 8},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},
          {"vocab_size", 128256}};
}

ModelConfig read(const json& config, std::vector<TensorInfo> tensors = {}) {
  const JsonFile file(test::MemoryFile(config.dump()).path());
  return read_hugging_face_config(file.root(), TensorSource({}, std::move(tensors)));
}

void check_refused(const json& config, const std::string& part) {
  check_unreadable(part, [&] { return read(config); });
}

TEST_CASE("A LLaMA is read") {
  json source = llama();
  source["_name_or_path"] = "some/llama";
  source["head_dim"] = 128;
  source["tie_word_embeddings"] = true;
  const ModelConfig config = read(source);
  CHECK(config.name == "some/llama");
  CHECK(config.architecture == "llama");
  CHECK(config.vocabulary == 128256);
  CHECK(config.context == 131072);
  CHECK(config.layers == 16);
  CHECK(config.width == 2048);
  CHECK(config.heads == 32);
  CHECK(config.kv_heads == 8);
  CHECK(config.head_dim == 128);
  CHECK(config.ffn_width == 8192);
  CHECK(config.norm_epsilon == 1e-5f);
  CHECK_FALSE(config.qkv_bias);
  CHECK_FALSE(config.qk_norm);
  CHECK(config.tied_output);
  CHECK(config.rope_pairs == device::RopePairs::kHalves);
  CHECK(config.rope_frequencies.size() == 64);
}

TEST_CASE("What a config.json leaves out has the usual value") {
  json source = llama();
  for (const char* key : {"num_key_value_heads", "hidden_act", "rope_theta"}) source.erase(key);
  const ModelConfig config = read(source);
  CHECK(config.kv_heads == 32);
  CHECK(config.head_dim == 64);
  CHECK(config.rope_frequencies[1] == Approx(std::pow(10000.0, -1.0 / 32.0)));
}

TEST_CASE("The families differ in bias and norms of q and k") {
  json source = llama();
  source["architectures"] = {"Qwen2ForCausalLM"};
  CHECK(read(source).architecture == "qwen2");
  CHECK(read(source).qkv_bias);
  CHECK_FALSE(read(source).qk_norm);
  source["architectures"] = {"Qwen3ForCausalLM"};
  CHECK(read(source).architecture == "qwen3");
  CHECK_FALSE(read(source).qkv_bias);
  CHECK(read(source).qk_norm);
}

TEST_CASE("The output matrix is tied where the config says so or there is none") {
  const TensorInfo head = {.name = "lm_head.weight", .shape = {1}, .bytes = 4};
  json source = llama();
  CHECK(read(source).tied_output);
  CHECK_FALSE(read(source, {head}).tied_output);
  source["tie_word_embeddings"] = true;
  CHECK(read(source, {head}).tied_output);
  source["tie_word_embeddings"] = false;
  CHECK_FALSE(read(source).tied_output);
}

TEST_CASE("What a config.json cannot do without is an error to leave out") {
  for (const char* key :
       {"hidden_size", "intermediate_size", "max_position_embeddings", "num_attention_heads",
        "num_hidden_layers", "rms_norm_eps", "vocab_size"}) {
    json source = llama();
    source.erase(key);
    check_refused(source, std::string("'") + key + "' is missing");
    for (const json& value : {json("8"), json(-1), json::array()}) {
      source[key] = value;
      check_refused(source, "");
    }
    source[key] = 1ull << 63;
    check_refused(source, "");
  }
}

TEST_CASE("Other architectures are named and refused") {
  json source = llama();
  source["architectures"] = {"MixtralForCausalLM"};
  check_refused(source, "'MixtralForCausalLM' is not supported");
  source["architectures"] = {"LlamaForCausalLM", "LlamaForCausalLM"};
  check_refused(source, "is not supported");
  source.erase("architectures");
  check_refused(source, "is not supported");
}

TEST_CASE("Options that change the model are named and refused") {
  const std::pair<const char*, json> options[] = {
      {"hidden_act", "gelu"},
      {"attention_bias", true},
      {"mlp_bias", true},
      {"partial_rotary_factor", 0.5},
      {"quantization_config", {{"quant_method", "gptq"}}},
      {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}},
      {"rope_scaling", {{"type", "dynamic"}, {"factor", 4.0}}},
      {"rope_scaling", {{"factor", 4.0}}},
      {"rope_parameters", {{"partial_rotary_factor", 0.25}}},
      {"rope_parameters", {{"full_attention", {{"rope_theta", 1e6}}}}},
      {"layer_types", {"full_attention", "sliding_attention"}},
      {"sliding_window", 4096},
  };
  for (const auto& [key, value] : options) {
    json source = llama();
    source[key] = value;
    check_refused(source, "the model uses");
  }
  json neutral = llama();
  neutral["attention_bias"] = false;
  neutral["mlp_bias"] = false;
  neutral["partial_rotary_factor"] = 1.0;
  neutral["rope_scaling"] = nullptr;
  neutral["layer_types"] = {"full_attention"};
  CHECK_NOTHROW(read(neutral));
}

TEST_CASE("A sliding window is harmless where it is not in use or hides nothing") {
  json source = llama();
  source["architectures"] = {"MistralForCausalLM"};
  source["sliding_window"] = nullptr;
  CHECK(read(source).architecture == "llama");
  source["sliding_window"] = 131072;
  CHECK_NOTHROW(read(source));
  source["sliding_window"] = 131071;
  check_refused(source, "a sliding window");
  source["use_sliding_window"] = true;
  check_refused(source, "a sliding window");
  source["use_sliding_window"] = false;
  CHECK_NOTHROW(read(source));
}

TEST_CASE("RoPE is scaled as the file says, in older and newer words") {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 32.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  json older = llama();
  older["rope_scaling"] = scaling;
  const std::vector<float> frequencies = read(older).rope_frequencies;
  CHECK(frequencies[0] == 1.0f);
  CHECK(frequencies[31] == Approx(std::pow(500000.0, -31.0 / 32.0) / 32.0));

  json newer = llama();
  newer.erase("rope_theta");
  newer["rope_parameters"] = scaling;
  newer["rope_parameters"]["rope_theta"] = 500000.0;
  CHECK(read(newer).rope_frequencies == frequencies);

  json plain = llama();
  plain["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 500000.0}};
  CHECK(read(plain).rope_frequencies == read(llama()).rope_frequencies);

  json linear = llama();
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 4}};
  CHECK(read(linear).rope_frequencies[0] == 0.25f);
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    json source = older;
    source["rope_scaling"].erase(key);
    check_refused(source, std::string("'") + key + "' is missing");
    source["rope_scaling"][key] = 0;
    check_refused(source, "RoPE");
  }
}

}  // namespace
}  // namespace incipit::model
