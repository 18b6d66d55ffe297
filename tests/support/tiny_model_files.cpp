// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/quantize.h"
#include "support/safetensors_writer.h"
#include "support/tiny_model.h"

namespace incipit::test {
namespace {

using nlohmann::json;
using tensor::DType;

std::string replace_front(const std::string& name, const std::string& front,
                          const std::string& by) {
  return by + name.substr(front.size());
}

// Hugging Face's name of a tensor in GGUF's words.
std::string gguf_name(const std::string& name) {
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
      {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
      {"self_attn.o_proj", "attn_output"}, {"self_attn.q_norm", "attn_q_norm"},
      {"self_attn.k_norm", "attn_k_norm"}, {"post_attention_layernorm", "ffn_norm"},
      {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
      {"mlp.down_proj", "ffn_down"},
  };
  if (name == "model.embed_tokens.weight") return "token_embd.weight";
  if (name == "model.norm.weight") return "output_norm.weight";
  if (name == "lm_head.weight") return "output.weight";
  const std::string in_layers = replace_front(name, "model.layers.", "blk.");
  const std::size_t dot = in_layers.find('.', 4) + 1;
  for (const auto& [theirs, ours] : kNames) {
    if (in_layers.compare(dot, std::string(theirs).size(), theirs) == 0) {
      return in_layers.substr(0, dot) + replace_front(in_layers.substr(dot), theirs, ours);
    }
  }
  throw std::runtime_error("no GGUF name for " + name);
}

// Pairs (i, i + dim/2) of each head's rows become pairs (2i, 2i + 1).
std::string interleave_rows(const TinyTensor& tensor, std::size_t head_dim) {
  const std::size_t rows = tensor.shape[0];
  const std::size_t row_bytes = tensor.bytes.size() / rows;
  std::string bytes;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t head = row / head_dim;
    const std::size_t in_head = row % head_dim;
    const std::size_t from = head * head_dim + in_head / 2 + (in_head % 2) * (head_dim / 2);
    bytes += tensor.bytes.substr(from * row_bytes, row_bytes);
  }
  return bytes;
}

bool is_q_or_k(const std::string& name) {
  return name.ends_with("q_proj.weight") || name.ends_with("k_proj.weight");
}

void add_tokenizer(GgufWriter& file, const TinyModel& model) {
  const text::TokenizerSpec& spec = model.tokenizer;
  std::vector<std::int32_t> types;
  for (const text::TokenKind kind : spec.kinds) {
    types.push_back(kind == text::TokenKind::kControl ? 3 : 1);
  }
  file.set_string("tokenizer.ggml.model", "gpt2")
      .set_string("tokenizer.ggml.pre",
                  spec.pre == text::PreTokenizer::kSmolLm ? "smollm" : "qwen2")
      .set_strings("tokenizer.ggml.tokens", spec.tokens)
      .set_i32s("tokenizer.ggml.token_type", types)
      .set_strings("tokenizer.ggml.merges", spec.merges)
      .set_u32("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(spec.bos))
      .set_u32("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(spec.ends[0]))
      .set_bool("tokenizer.ggml.add_bos_token", spec.add_bos)
      .set_string("tokenizer.chat_template", model.chat_template);
}

void add_config(GgufWriter& file, const TinyModel& model) {
  const model::ModelConfig& config = model.config;
  const std::string arch = config.architecture + '.';
  const auto set = [&](const char* key, std::size_t value) {
    file.set_u32(arch + key, static_cast<std::uint32_t>(value));
  };
  file.set_string("general.architecture", config.architecture)
      .set_string("general.name", config.name);
  set("block_count", config.layers);
  set("context_length", config.context);
  set("embedding_length", config.width);
  set("feed_forward_length", config.ffn_width);
  set("attention.head_count", config.heads);
  set("attention.head_count_kv", config.kv_heads);
  set("attention.key_length", config.head_dim);
  set("attention.value_length", config.head_dim);
  set("rope.dimension_count", config.head_dim);
  if (config.window > 0) set("attention.sliding_window", config.window);
  file.set_f32(arch + "attention.layer_norm_rms_epsilon", config.norm_epsilon)
      .set_f32(arch + "rope.freq_base", model.options.rope_base);
}

json config_json(const TinyModel& model) {
  const model::ModelConfig& config = model.config;
  static constexpr const char* kClasses[] = {"LlamaForCausalLM", "Qwen2ForCausalLM",
                                             "Qwen3ForCausalLM"};
  json result = {
      {"_name_or_path", config.name},
      {"architectures", {kClasses[static_cast<std::size_t>(model.options.family)]}},
      {"model_type", config.architecture},
      {"bos_token_id", model.tokenizer.bos},
      {"eos_token_id", model.tokenizer.ends[0]},
      {"head_dim", config.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", config.width},
      {"intermediate_size", config.ffn_width},
      {"max_position_embeddings", config.context},
      {"num_attention_heads", config.heads},
      {"num_hidden_layers", config.layers},
      {"num_key_value_heads", config.kv_heads},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", static_cast<double>(model.options.rope_base)},
      {"rope_scaling", nullptr},
      {"tie_word_embeddings", config.tied_output},
      {"torch_dtype", "float32"},
      {"vocab_size", config.vocabulary},
  };
  if (config.window > 0) {
    result["architectures"] = {"MistralForCausalLM"};
    result["sliding_window"] = config.window;
  }
  if (model.options.llama3_rope) {
    result["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", kTinyRope.factor},
                              {"low_freq_factor", kTinyRope.low_frequency_factor},
                              {"high_freq_factor", kTinyRope.high_frequency_factor},
                              {"original_max_position_embeddings", kTinyRope.original_context}};
  }
  return result;
}

// The parts of a tokenizer.json that decide which ids a text gets, as the families ship them.
json tokenizer_json(const TinyModel& model) {
  const text::TokenizerSpec& spec = model.tokenizer;
  json vocabulary = json::object();
  json added = json::array();
  for (std::size_t id = 0; id < spec.tokens.size(); ++id) {
    vocabulary[spec.tokens[id]] = id;
    if (spec.kinds[id] != text::TokenKind::kControl) continue;
    added.push_back({{"id", id},
                     {"content", spec.tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  json byte_level = {{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", spec.pre == text::PreTokenizer::kSmolLm}};
  json first;
  if (spec.pre == text::PreTokenizer::kSmolLm) {
    first = {{"type", "Digits"}, {"individual_digits", true}};
  } else {
    first = {{"type", "Split"},
             {"pattern",
              {{"Regex", R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| )"
                         R"(?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"}}},
             {"behavior", "Isolated"},
             {"invert", false}};
  }
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", spec.normalize_nfc ? json{{"type", "NFC"}} : json(nullptr)},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {first, byte_level}}}},
      {"post_processor", nullptr},
      {"decoder", byte_level},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocabulary},
        {"merges", spec.merges}}},
  };
}

void add_tensor(SafetensorsWriter& writer, const TinyModel& model, const std::string& name) {
  const TinyTensor& tensor = model.stored.at(name);
  if (tensor::is_quantized(tensor.type)) {
    writer.add(name, "F32", tensor.shape, encode(DType::kF32, model.values(name)));
  } else {
    writer.add(name, safetensors_type(tensor.type), tensor.shape, tensor.bytes);
  }
}

void write_weights(const TinyModel& model, const std::filesystem::path& directory,
                   std::size_t shards) {
  std::vector<SafetensorsWriter> writers(shards);
  std::vector<std::string> files;
  for (std::size_t i = 0; i < shards; ++i) {
    files.push_back(shards == 1 ? "model.safetensors"
                                : "model-" + std::to_string(i + 1) + "-of-" +
                                      std::to_string(shards) + ".safetensors");
  }
  json map = json::object();
  std::size_t next = 0;
  for (const auto& [name, values] : model.tensors) {
    const std::size_t shard = next++ % shards;
    add_tensor(writers[shard], model, name);
    map[name] = files[shard];
  }
  for (std::size_t i = 0; i < shards; ++i) writers[i].write(directory / files[i]);
  if (shards > 1) {
    const json index = {{"metadata", json::object()}, {"weight_map", map}};
    write_file(directory / "model.safetensors.index.json", index.dump());
  }
}

}  // namespace

GgufWriter TinyModel::gguf() const {
  GgufWriter file;
  add_config(file, *this);
  add_tokenizer(file, *this);
  for (const auto& [name, tensor] : stored) {
    const bool permuted = options.family == Family::kLlama && is_q_or_k(name);
    GgufWriter::Tensor& added = file.tensors.emplace_back();
    added.name = gguf_name(name);
    added.dims.assign(tensor.shape.rbegin(), tensor.shape.rend());
    added.type = ggml_type(tensor.type);
    added.data = permuted ? interleave_rows(tensor, options.head_dim) : tensor.bytes;
  }
  if (!rope_factors.empty()) {
    file.tensors.push_back({"rope_freqs.weight",
                            {rope_factors.size()},
                            ggml_type(DType::kF32),
                            encode(DType::kF32, rope_factors)});
  }
  return file;
}

void TinyModel::write_hugging_face(const std::filesystem::path& directory,
                                   std::size_t shards) const {
  std::filesystem::create_directories(directory);
  write_file(directory / "config.json", config_json(*this).dump(2));
  write_file(directory / "generation_config.json",
             json{{"bos_token_id", tokenizer.bos}, {"eos_token_id", tokenizer.ends}}.dump(2));
  write_file(directory / "tokenizer.json", tokenizer_json(*this).dump());
  write_file(directory / "tokenizer_config.json",
             json{{"bos_token", tokenizer.tokens[static_cast<std::size_t>(tokenizer.bos)]},
                  {"eos_token", tokenizer.tokens[static_cast<std::size_t>(tokenizer.ends[0])]},
                  {"add_bos_token", tokenizer.add_bos},
                  {"chat_template", chat_template}}
                 .dump(2));
  write_weights(*this, directory, shards);
}

}  // namespace incipit::test
