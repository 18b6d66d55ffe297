// SPDX-License-Identifier: Apache-2.0
#include "support/tiny_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>

#include "support/quantize.h"
#include "support/weight_types.h"

namespace incipit::test {
namespace {

using tensor::DType;

// SplitMix64: the same numbers everywhere, which std's distributions do not promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  // Uniform over [-1, 1), with 24 bits.
  float next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<float>(static_cast<std::int64_t>(z >> 40) - (1 << 23)) / (1 << 23);
  }

 private:
  std::uint64_t state_;
};

constexpr std::array kMerges = {
    "h e",  "i n",  "Ġ t",   "Ġ a",  "e r",  "r e",  "o n",  "Ġt he", "a n", "Ġ s",
    "an d", "Ġa n", "Ġan d", "in g", "o r",  "Ġ w",  "e n",  "Ġ o",   "a t", "s t",
    "Ġ c",  "o u",  "Ġ b",   "i s",  "Ġ p",  "Ġo f", "e d",  "l l",   "Ġ f", "Ġt o",
    "o m",  "l e",  "Ġ in",  "Ġt h", "Ġ he", "v e",  "er e",
};

void append_utf8(std::string& text, unsigned code_point) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else {
    text += static_cast<char>(0xc0 | (code_point >> 6));
    text += static_cast<char>(0x80 | (code_point & 0x3f));
  }
}

// GPT-2's alphabet: printable bytes stand for themselves, the others for code points from 256 on.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    append_utf8(alphabet.emplace_back(), printable ? byte : next++);
  }
  return alphabet;
}

text::TokenizerSpec make_tokenizer(Family family) {
  text::TokenizerSpec spec;
  spec.tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  spec.kinds.assign(spec.tokens.size(), text::TokenKind::kControl);
  for (std::string& byte : byte_alphabet()) spec.tokens.push_back(std::move(byte));
  for (const std::string merge : kMerges) {
    const std::size_t space = merge.find(' ');
    spec.merges.push_back(merge);
    spec.tokens.push_back(merge.substr(0, space) + merge.substr(space + 1));
  }
  spec.kinds.resize(spec.tokens.size(), text::TokenKind::kNormal);
  spec.pre = family == Family::kLlama ? text::PreTokenizer::kSmolLm : text::PreTokenizer::kQwen2;
  spec.normalize_nfc = family != Family::kLlama;
  spec.bos = 1;
  spec.ends = {2, 0};
  return spec;
}

double rope_frequency(const TinyModelOptions& options, std::size_t pair) {
  return std::pow(static_cast<double>(options.rope_base),
                  -2.0 * static_cast<double>(pair) / static_cast<double>(options.head_dim));
}

constexpr const char* kChatTemplate =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}";

// What divides the frequency of each pair.
std::vector<double> llama3_factors(const TinyModelOptions& options) {
  std::vector<double> factors;
  for (std::size_t i = 0; i < options.head_dim / 2; ++i) {
    const double wavelength = 2.0 * std::numbers::pi / rope_frequency(options, i);
    const double turns = static_cast<double>(kTinyRope.original_context) / wavelength;
    if (turns < kTinyRope.low_frequency_factor) {
      factors.push_back(kTinyRope.factor);
    } else if (turns > kTinyRope.high_frequency_factor) {
      factors.push_back(1.0);
    } else {
      const double kept = (turns - kTinyRope.low_frequency_factor) /
                          (kTinyRope.high_frequency_factor - kTinyRope.low_frequency_factor);
      factors.push_back(1.0 / ((1.0 - kept) / kTinyRope.factor + kept));
    }
  }
  return factors;
}

model::ModelConfig make_config(const TinyModelOptions& options, std::size_t vocabulary) {
  model::ModelConfig config;
  config.name = "tiny";
  config.architecture = options.family == Family::kLlama   ? "llama"
                        : options.family == Family::kQwen2 ? "qwen2"
                                                           : "qwen3";
  config.vocabulary = vocabulary;
  config.context = options.context;
  config.layers = options.layers;
  config.width = options.width;
  config.heads = options.heads;
  config.kv_heads = options.kv_heads;
  config.head_dim = options.head_dim;
  config.ffn_width = options.ffn_width;
  config.norm_epsilon = 1e-5f;
  config.qkv_bias = options.family == Family::kQwen2;
  config.qk_norm = options.family == Family::kQwen3;
  config.tied_output = options.tied;
  config.rope_pairs = device::RopePairs::kHalves;
  if (options.window > 0) {
    config.window = options.window;
    config.windowed_layers.assign(options.layers, 1);
  }
  const std::vector<double> factors = options.llama3_rope
                                          ? llama3_factors(options)
                                          : std::vector<double>(options.head_dim / 2, 1.0);
  for (std::size_t i = 0; i < factors.size(); ++i) {
    config.rope_frequencies.push_back(static_cast<float>(rope_frequency(options, i) / factors[i]));
  }
  return config;
}

// Fills a model's tensors. Every layer changes the residual stream by more than it holds, so that
// no token is predicted from its embedding alone.
class TensorMaker {
 public:
  explicit TensorMaker(TinyModel& model) : model_(model), random_(model.options.seed) {}

  void make_all() {
    const model::ModelConfig& config = model_.config;
    const DType embedding_type = model_.options.embedding_type.value_or(model_.options.type);
    matrix("model.embed_tokens.weight", config.vocabulary, config.width, embedding_type, 3.0f);
    for (std::size_t layer = 0; layer < config.layers; ++layer) make_layer(layer);
    vector("model.norm.weight", config.width, 1.0f, 0.25f);
    if (!config.tied_output) {
      matrix("lm_head.weight", config.vocabulary, config.width, model_.options.type, 3.0f);
    }
  }

 private:
  void make_layer(std::size_t layer) {
    const model::ModelConfig& config = model_.config;
    const std::string prefix = "model.layers." + std::to_string(layer) + '.';
    const std::size_t q_rows = config.heads * config.head_dim;
    const std::size_t kv_rows = config.kv_heads * config.head_dim;
    const DType type = model_.options.type;
    vector(prefix + "input_layernorm.weight", config.width, 1.0f, 0.25f);
    const std::pair<const char*, std::size_t> projections[] = {
        {"q_proj", q_rows}, {"k_proj", kv_rows}, {"v_proj", kv_rows}};
    for (const auto& [name, rows] : projections) {
      matrix(prefix + "self_attn." + name + ".weight", rows, config.width, type, 1.5f);
      if (config.qkv_bias) vector(prefix + "self_attn." + name + ".bias", rows, 0.0f, 0.5f);
    }
    if (config.qk_norm) {
      vector(prefix + "self_attn.q_norm.weight", config.head_dim, 1.25f, 0.5f);
      vector(prefix + "self_attn.k_norm.weight", config.head_dim, 1.25f, 0.5f);
    }
    matrix(prefix + "self_attn.o_proj.weight", config.width, q_rows, type, 1.5f);
    vector(prefix + "post_attention_layernorm.weight", config.width, 1.0f, 0.25f);
    matrix(prefix + "mlp.gate_proj.weight", config.ffn_width, config.width, type, 1.5f);
    matrix(prefix + "mlp.up_proj.weight", config.ffn_width, config.width, type, 1.5f);
    matrix(prefix + "mlp.down_proj.weight", config.width, config.ffn_width, type, 1.5f);
  }

  // A product with a vector of unit root mean square has about the root mean square `gain`.
  void matrix(const std::string& name, std::size_t rows, std::size_t columns, DType type,
              float gain) {
    const float range = gain * std::sqrt(3.0f / static_cast<float>(columns));
    std::vector<float> values(rows * columns);
    for (float& value : values) value = range * random_.next();
    TinyTensor tensor{{rows, columns}, type, encode(type, values)};
    const std::size_t row_bytes = tensor::row_bytes(type, columns);
    const auto bytes = std::as_bytes(std::span(tensor.bytes));
    for (std::size_t row = 0; row < rows; ++row) {
      tensor::dequantize_row(type, bytes.subspan(row * row_bytes, row_bytes).data(),
                             std::span(values).subspan(row * columns, columns));
    }
    model_.tensors.emplace(name, std::move(values));
    model_.stored.emplace(name, std::move(tensor));
  }

  void vector(const std::string& name, std::size_t elements, float middle, float range) {
    std::vector<float> values(elements);
    for (float& value : values) value = middle + range * random_.next();
    model_.stored.emplace(name, TinyTensor{{elements}, DType::kF32, encode(DType::kF32, values)});
    model_.tensors.emplace(name, std::move(values));
  }

  TinyModel& model_;
  Random random_;
};

// Rows of every matrix become whole blocks.
TinyModelOptions in_whole_blocks(TinyModelOptions options) {
  options.width = whole_blocks(options.type, options.width);
  options.width = whole_blocks(options.embedding_type.value_or(options.type), options.width);
  options.ffn_width = whole_blocks(options.type, options.ffn_width);
  const std::size_t block = tensor::block_elements(options.type);
  while (options.heads * options.head_dim % block != 0) options.head_dim *= 2;
  return options;
}

}  // namespace

TinyModel make_tiny_model(const TinyModelOptions& asked) {
  const TinyModelOptions options = in_whole_blocks(asked);
  TinyModel model;
  model.options = options;
  model.tokenizer = make_tokenizer(options.family);
  while (model.tokenizer.tokens.size() < options.vocabulary) {
    model.tokenizer.tokens.push_back("<|" + std::to_string(model.tokenizer.tokens.size()) + "|>");
    model.tokenizer.kinds.push_back(text::TokenKind::kControl);
  }
  model.config = make_config(options, model.tokenizer.tokens.size());
  model.chat_template = kChatTemplate;
  if (options.llama3_rope) {
    for (const double factor : llama3_factors(options)) {
      model.rope_factors.push_back(static_cast<float>(factor));
    }
  }
  TensorMaker(model).make_all();
  return model;
}

TinyModel make_smallest_model(tensor::DType type) {
  const std::size_t width = std::max<std::size_t>(32, tensor::block_elements(type));
  TinyModel model = make_tiny_model({.layers = 1,
                                     .width = width,
                                     .heads = width / 16,
                                     .kv_heads = 1,
                                     .head_dim = 16,
                                     .ffn_width = width,
                                     .llama3_rope = true,
                                     .tied = true,
                                     .type = type});
  constexpr std::size_t kTokens = 12;
  model.tokenizer.tokens.resize(kTokens);
  model.tokenizer.kinds.resize(kTokens);
  model.tokenizer.merges = {};
  model.config.vocabulary = kTokens;
  TinyTensor& embedding = model.stored.at("model.embed_tokens.weight");
  embedding.bytes.resize(embedding.bytes.size() / embedding.shape[0] * kTokens);
  embedding.shape[0] = kTokens;
  model.tensors.at("model.embed_tokens.weight").resize(kTokens * model.config.width);
  return model;
}

}  // namespace incipit::test
