// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "incipit/error.h"
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
      {"num_local_experts", 8},
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

TEST_CASE("A Mistral has its window in all layers, where it hides anything") {
  json source = llama();
  source["architectures"] = {"MistralForCausalLM"};
  source["sliding_window"] = nullptr;
  CHECK(read(source).architecture == "llama");
  source["sliding_window"] = 131072;
  CHECK(read(source).windowed_layers.empty());
  source["sliding_window"] = 131071;
  CHECK(read(source).window == 131071);
  CHECK(read(source).windowed_layers == std::vector<std::uint8_t>(16, 1));
  source["use_sliding_window"] = false;
  CHECK(read(source).windowed_layers.empty());
  source["sliding_window"] = 0;
  source["use_sliding_window"] = true;
  check_refused(source, "'sliding_window'");
}

TEST_CASE("A Qwen has a window in its last layers, where it says that it is in use") {
  json source = llama();
  source["architectures"] = {"Qwen2ForCausalLM"};
  source["sliding_window"] = 4096;
  CHECK(read(source).windowed_layers.empty());
  source["use_sliding_window"] = true;
  CHECK(read(source).windowed_layers.empty());  // 28 layers without, unless it says otherwise
  source["max_window_layers"] = 15;
  std::vector<std::uint8_t> last(16, 0);
  last.back() = 1;
  CHECK(read(source).windowed_layers == last);
  source["layer_types"] = std::vector<std::string>(16, "full_attention");
  CHECK(read(source).windowed_layers.empty());
  source["layer_types"][15] = "sliding_attention";
  CHECK(read(source).windowed_layers == last);
  source["use_sliding_window"] = false;
  check_refused(source, "a sliding window that it does not have");
  source["use_sliding_window"] = true;
  source["layer_types"].push_back("full_attention");
  check_refused(source, "names 17 layers of 16");
}

json gemma() {
  json source = llama();
  source["architectures"] = {"Gemma3ForCausalLM"};
  source.erase("hidden_act");
  source["hidden_activation"] = "gelu_pytorch_tanh";
  source["hidden_size"] = 640;
  source["num_hidden_layers"] = 7;
  source["sliding_window"] = 512;
  source["rope_theta"] = 1e6;
  source["rope_local_base_freq"] = 1e4;
  source["query_pre_attn_scalar"] = 64;
  return source;
}

TEST_CASE("A Gemma 3 in older words") {
  const TensorInfo table = {
      .name = "model.embed_tokens.weight", .type = tensor::DType::kBF16, .shape = {1}, .bytes = 2};
  const ModelConfig config = read(gemma(), {table});
  CHECK(config.architecture == "gemma3");
  CHECK(config.norm_place == NormPlace::kAround);
  CHECK(config.activation == device::Activation::kGeluTanh);
  CHECK(config.head_dim == 256);
  CHECK(config.qk_norm);
  CHECK(config.attention_scale == 0.125f);
  CHECK(config.embedding_scale == 25.25f);
  CHECK(config.window == 512);
  CHECK(config.windowed_layers == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1});
  CHECK(config.rope_frequencies[64] == Approx(1e-3));
  CHECK(config.local_rope_frequencies[64] == Approx(1e-2));
  json scaled = gemma();
  scaled["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 8.0}};
  scaled["sliding_window_pattern"] = 2;
  CHECK(read(scaled).rope_frequencies[0] == 0.125f);
  CHECK(read(scaled).local_rope_frequencies[0] == 1.0f);
  CHECK(read(scaled).windowed_layers == std::vector<std::uint8_t>{1, 0, 1, 0, 1, 0, 1});
  json short_context = gemma();
  short_context["max_position_embeddings"] = 256;
  CHECK(read(short_context).window == 256);
  CHECK(read(short_context).windowed_layers == config.windowed_layers);
  CHECK(&hugging_face_names(config) == &kGemma3Names);
}

TEST_CASE("A Gemma 3 in newer words, and what of it is refused") {
  json source = gemma();
  source.erase("rope_theta");
  source.erase("rope_local_base_freq");
  source["rope_parameters"] = {
      {"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 100.0}}}};
  source["layer_types"] = std::vector<std::string>(7, "sliding_attention");
  source["final_logit_softcapping"] = 30.0;
  source["attn_logit_softcapping"] = 50.0;
  const ModelConfig config = read(source);
  CHECK(config.rope_frequencies[0] == 0.25f);
  CHECK(config.local_rope_frequencies[64] == Approx(0.1));
  CHECK(config.windowed_layers == std::vector<std::uint8_t>(7, 1));
  CHECK(config.logit_soft_cap == 30.0f);
  CHECK(config.attention_soft_cap == 50.0f);
  const std::pair<const char*, json> refused[] = {
      {"hidden_activation", "gelu"},
      {"use_bidirectional_attention", true},
      {"attention_bias", true},
      {"query_pre_attn_scalar", 0},
      {"query_pre_attn_scalar", -1},
      {"final_logit_softcapping", -1.0},
      {"sliding_window", nullptr},
      {"sliding_window", 0},
      {"layer_types", {"chunked_attention"}},
      {"rope_parameters", {{"full_attention", {{"rope_type", "default"}}}}},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "yarn"}}}, {"sliding_attention", json::object()}}},
  };
  for (const auto& [key, value] : refused) {
    json changed = source;
    changed[key] = value;
    CAPTURE(key);
    check_refused(changed, "");
  }
  source["architectures"] = {"Gemma3ForConditionalGeneration"};
  check_refused(source, "'Gemma3ForConditionalGeneration' is not supported");
}

TEST_CASE("A GPT-2 is read") {
  json source = {{"architectures", {"GPT2LMHeadModel"}},
                 {"activation_function", "gelu_new"},
                 {"layer_norm_epsilon", 1e-5},
                 {"n_embd", 768},
                 {"n_head", 12},
                 {"n_layer", 12},
                 {"n_positions", 1024},
                 {"vocab_size", 50257}};
  const ModelConfig config = read(source);
  CHECK(config.architecture == "gpt2");
  CHECK(config.norm == Norm::kLayer);
  CHECK(config.norm_place == NormPlace::kBefore);
  CHECK(config.positions == Positions::kLearned);
  CHECK(config.position_offset == 0);
  CHECK(config.context == 1024);
  CHECK(config.ffn_width == 3072);
  CHECK(config.head_dim == 64);
  CHECK(config.kv_heads == 12);
  CHECK((config.qkv_bias && config.output_bias && config.ffn_bias && config.tied_output));
  CHECK_FALSE(config.gated_ffn);
  CHECK(config.rope_frequencies.empty());
  source["n_inner"] = 1000;
  CHECK(read(source).ffn_width == 1000);
  const std::pair<const char*, json> refused[] = {{"activation_function", "gelu"},
                                                  {"scale_attn_weights", false},
                                                  {"scale_attn_by_inverse_layer_idx", true},
                                                  {"add_cross_attention", true},
                                                  {"n_head", 11},
                                                  {"n_embd", nullptr}};
  for (const auto& [key, value] : refused) {
    json changed = source;
    changed[key] = value;
    CAPTURE(key);
    check_refused(changed, "");
  }
}

TEST_CASE("An OPT is read, the one with norms behind the branches too") {
  json source = {{"architectures", {"OPTForCausalLM"}},
                 {"activation_function", "relu"},
                 {"ffn_dim", 4096},
                 {"hidden_size", 1024},
                 {"max_position_embeddings", 2048},
                 {"num_attention_heads", 16},
                 {"num_hidden_layers", 24},
                 {"vocab_size", 50272}};
  ModelConfig config = read(source);
  CHECK(config.architecture == "opt");
  CHECK(config.norm_place == NormPlace::kBefore);
  CHECK(config.final_norm);
  CHECK(config.position_offset == 2);
  CHECK(config.activation == device::Activation::kRelu);
  CHECK_FALSE(config.projects_embedding());
  source["do_layer_norm_before"] = false;
  source["word_embed_proj_dim"] = 512;
  config = read(source);
  CHECK(config.norm_place == NormPlace::kAfter);
  CHECK_FALSE(config.final_norm);
  CHECK(config.embedding_width == 512);
  CHECK(config.projects_embedding());
  for (const char* key : {"enable_bias", "layer_norm_elementwise_affine"}) {
    json changed = source;
    changed[key] = false;
    check_refused(changed, std::string(key) + " = false");
  }
}

TEST_CASE("A BLOOM is read in older and newer words") {
  json source = {{"architectures", {"BloomForCausalLM"}},
                 {"layer_norm_epsilon", 1e-5},
                 {"n_embed", 1024},
                 {"num_attention_heads", 16},
                 {"n_layer", 24},
                 {"vocab_size", 250880}};
  const ModelConfig config = read(source);
  CHECK(config.architecture == "bloom");
  CHECK(config.positions == Positions::kAlibi);
  CHECK(config.embedding_norm);
  CHECK(config.context == 2048);
  CHECK(config.ffn_width == 4096);
  CHECK(config.activation == device::Activation::kGeluTanh);
  json newer = source;
  newer.erase("n_embed");
  newer.erase("num_attention_heads");
  newer["hidden_size"] = 1024;
  newer["n_head"] = 16;
  newer["seq_length"] = 512;
  CHECK(read(newer).context == 512);
  CHECK(read(newer).heads == 16);
  source["apply_residual_connection_post_layernorm"] = true;
  check_refused(source, "apply_residual_connection_post_layernorm");
}

TEST_CASE("Whatever a member of a config holds, it is read or refused") {
  const std::vector<json> values = {nullptr,       true,           0,     1,    -1, 3,
                                    1ull << 40,    1ull << 63,     1e300, -0.5, "", "x",
                                    json::array(), json::object(), {1, 2}};
  const std::filesystem::path models = std::filesystem::path(INCIPIT_TEST_DATA) / "reference";
  for (const char* const name :
       {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-mistral", "tiny-gemma3", "tiny-gpt2",
        "tiny-opt", "tiny-opt-post", "tiny-bloom"}) {
    const JsonFile file(models / name / "config.json");
    const json original = file.root().members();
    CHECK_NOTHROW(read(original));
    std::size_t refused = 0;
    for (const auto& [key, value] : original.items()) {
      json changed = original;
      for (const json& other : values) {
        changed[key] = other;
        try {
          check_config(read(changed), "config.json");
        } catch (const Error& error) {
          CHECK(error.code() == ErrorCode::kModelUnreadable);
          ++refused;
        }
      }
    }
    CAPTURE(name);
    CHECK(refused > 50);
  }
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
