// SPDX-License-Identifier: Apache-2.0
#include "model/weights_loader.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "model/files.h"
#include "tensor/quantized_blocks.h"

namespace incipit::model {

constexpr TensorNames kGgufNames = {
    .embedding = "token_embd",
    .final_norm = "output_norm",
    .output = "output",
    .layer = "blk.",
    .attention_norm = "attn_norm",
    .q = "attn_q",
    .k = "attn_k",
    .v = "attn_v",
    .q_norm = "attn_q_norm",
    .k_norm = "attn_k_norm",
    .attention_output = "attn_output",
    .ffn_norm = "ffn_norm",
    .gate = "ffn_gate",
    .up = "ffn_up",
    .down = "ffn_down",
};

constexpr TensorNames kHuggingFaceNames = {
    .embedding = "model.embed_tokens",
    .final_norm = "model.norm",
    .output = "lm_head",
    .layer = "model.layers.",
    .attention_norm = "input_layernorm",
    .q = "self_attn.q_proj",
    .k = "self_attn.k_proj",
    .v = "self_attn.v_proj",
    .q_norm = "self_attn.q_norm",
    .k_norm = "self_attn.k_norm",
    .attention_output = "self_attn.o_proj",
    .ffn_norm = "post_attention_layernorm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
};

namespace {

using Matrix = std::unique_ptr<device::Weight>;

// A tensor that the model needs, and where it goes: one of `matrix` and `vector`.
struct Slot {
  std::string name;
  std::vector<std::uint64_t> shape;
  Matrix* matrix = nullptr;
  device::Buffer* vector = nullptr;
  const TensorInfo* tensor = nullptr;
};

// Lists the slots of a model; they point into `weights`.
class Planner {
 public:
  Planner(const TensorNames& names, const ModelConfig& config, ModelWeights& weights)
      : names_(names), config_(config), weights_(weights) {}

  std::vector<Slot> plan() {
    add_matrix("", names_.embedding, config_.vocabulary, config_.width, weights_.embedding);
    weights_.layers.resize(config_.layers);
    for (std::size_t i = 0; i < config_.layers; ++i) {
      plan_layer(std::string(names_.layer) + std::to_string(i) + '.', weights_.layers[i]);
    }
    add_vector("", names_.final_norm, ".weight", config_.width, weights_.final_norm);
    if (!config_.tied_output) {
      add_matrix("", names_.output, config_.vocabulary, config_.width, weights_.output);
    }
    return std::move(slots_);
  }

 private:
  void plan_layer(const std::string& layer, LayerWeights& to) {
    const std::size_t width = config_.width;
    const std::size_t q_rows = config_.heads * config_.head_dim;
    const std::size_t kv_rows = config_.kv_heads * config_.head_dim;
    add_vector(layer, names_.attention_norm, ".weight", width, to.attention_norm);
    add_matrix(layer, names_.q, q_rows, width, to.q);
    add_matrix(layer, names_.k, kv_rows, width, to.k);
    add_matrix(layer, names_.v, kv_rows, width, to.v);
    if (config_.qkv_bias) {
      add_vector(layer, names_.q, ".bias", q_rows, to.q_bias);
      add_vector(layer, names_.k, ".bias", kv_rows, to.k_bias);
      add_vector(layer, names_.v, ".bias", kv_rows, to.v_bias);
    }
    if (config_.qk_norm) {
      add_vector(layer, names_.q_norm, ".weight", config_.head_dim, to.q_norm);
      add_vector(layer, names_.k_norm, ".weight", config_.head_dim, to.k_norm);
    }
    add_matrix(layer, names_.attention_output, width, q_rows, to.output);
    add_vector(layer, names_.ffn_norm, ".weight", width, to.ffn_norm);
    add_matrix(layer, names_.gate, config_.ffn_width, width, to.gate);
    add_matrix(layer, names_.up, config_.ffn_width, width, to.up);
    add_matrix(layer, names_.down, width, config_.ffn_width, to.down);
  }

  void add_matrix(const std::string& layer, std::string_view name, std::uint64_t rows,
                  std::uint64_t columns, Matrix& to) {
    slots_.push_back({layer + std::string(name) + ".weight", {rows, columns}, &to});
  }

  void add_vector(const std::string& layer, std::string_view name, const char* suffix,
                  std::uint64_t elements, device::Buffer& to) {
    slots_.push_back({layer + std::string(name) + suffix, {elements}, nullptr, &to});
  }

  const TensorNames& names_;
  const ModelConfig& config_;
  ModelWeights& weights_;
  std::vector<Slot> slots_;
};

// Tensors that files carry and that nothing is computed from: tables that follow from the config.
bool is_superfluous(const std::string& name, const TensorNames& names, const ModelConfig& config) {
  return name == "rope_freqs.weight" || name.ends_with("rotary_emb.inv_freq") ||
         name.ends_with(".attn_rot_embd.weight") ||
         (config.tied_output && name == std::string(names.output) + ".weight");
}

// The model's slots by name, each with its tensor.
std::vector<Slot> match_tensors(const TensorSource& source, const TensorNames& names,
                                const ModelConfig& config, ModelWeights& weights) {
  std::vector<Slot> slots = Planner(names, config, weights).plan();
  std::sort(slots.begin(), slots.end(),
            [](const Slot& a, const Slot& b) { return a.name < b.name; });
  for (Slot& slot : slots) {
    slot.tensor = source.find(slot.name);
    if (slot.tensor == nullptr) {
      fail(source.first_file(), "tensor '" + slot.name + "', which a " + config.architecture +
                                    " model needs, is missing; the model is incomplete, fetch it "
                                    "again");
    }
    if (slot.tensor->shape != slot.shape) {
      fail(source.file_of(*slot.tensor),
           "tensor '" + slot.name + "' has the shape " + to_string(slot.tensor->shape) +
               " where the model's config makes it " + to_string(slot.shape) +
               "; config and weights do not belong together");
    }
  }
  // Both lists are sorted by name, and each slot has its tensor.
  auto slot = slots.begin();
  for (const TensorInfo& tensor : source.tensors()) {
    if (slot != slots.end() && slot->name == tensor.name) {
      ++slot;
    } else if (!is_superfluous(tensor.name, names, config)) {
      fail(source.file_of(tensor), "tensor '" + tensor.name + "' has no place in a " +
                                       config.architecture +
                                       " model as incipit knows it; the model would be computed "
                                       "without it, so it is not supported");
    }
  }
  return slots;
}

// What the digest of all weights takes from one tensor, besides its bytes.
std::string describe(const TensorInfo& tensor) {
  base::FieldWriter fields;
  fields.add("name", tensor.name).add("type", tensor::name(tensor.type));
  for (const std::uint64_t dimension : tensor.shape) fields.add("dimension", dimension);
  return fields.add("bytes", tensor.bytes).str();
}

device::Buffer upload_vector(device::Device& device, tensor::DType type, std::size_t elements,
                             base::Bytes bytes) {
  std::vector<float> values(elements);
  tensor::dequantize_row(type, bytes.data(), values);
  device::Buffer buffer = device.allocate(elements * sizeof(float));
  device.upload(std::as_bytes(std::span(values)), buffer.data());
  return buffer;
}

// F16 numbers become BF16 numbers, in place.
void round_to_bf16(std::span<std::byte> numbers) noexcept {
  for (; numbers.size() >= 2; numbers = numbers.subspan(2)) {
    std::uint16_t bits;
    std::memcpy(&bits, numbers.data(), sizeof bits);
    bits = tensor::f32_to_bf16(tensor::f16_to_f32(bits));
    std::memcpy(numbers.data(), &bits, sizeof bits);
  }
}

template <class Word, Word kExponent>
bool words_finite(base::Bytes bytes) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i + sizeof(Word) <= bytes.size(); i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    finite &= (word & kExponent) != kExponent;
  }
  return finite;
}

// Of blocks that hold `scales` f16 numbers from byte `first` on.
bool blocks_finite(base::Bytes bytes, std::size_t block_bytes, std::size_t scales,
                   std::size_t first = 0) noexcept {
  bool finite = true;
  for (std::size_t i = 0; i + block_bytes <= bytes.size(); i += block_bytes) {
    finite &= words_finite<std::uint16_t, 0x7C00>(bytes.subspan(i + first, scales * 2));
  }
  return finite;
}

}  // namespace

void check_tensors(const TensorSource& source, const TensorNames& names,
                   const ModelConfig& config) {
  ModelWeights nowhere;
  match_tensors(source, names, config, nowhere);
}

ModelWeights load_weights(const TensorSource& source, const TensorNames& names,
                          const ModelConfig& config, device::Device& device,
                          const std::function<void(double fraction)>& progress, bool f16_as_bf16) {
  ModelWeights weights;
  const std::vector<Slot> slots = match_tensors(source, names, config, weights);
  double total = 0.0, done = 0.0;
  for (const Slot& slot : slots) total += static_cast<double>(slot.tensor->bytes);
  base::StreamHash128 hash;
  for (const Slot& slot : slots) {
    const TensorInfo& tensor = *slot.tensor;
    const std::size_t columns = tensor.shape.back();
    hash.update(base::as_bytes(describe(tensor)));
    const bool rounds = f16_as_bf16 && slot.matrix != nullptr && tensor.type == tensor::DType::kF16;
    if (rounds) hash.update(base::as_bytes("as BF16"));
    std::uint64_t position = 0;
    const auto read = [&](std::span<std::byte> next) {  // whole rows
      source.read(tensor, position, next);
      position += next.size();
      hash.update(next);
      if (!all_finite(tensor.type, next)) {
        fail(source.file_of(tensor), "tensor '" + tensor.name +
                                         "' holds infinities or NaN; the file is damaged or was "
                                         "converted with overflow");
      }
      if (rounds) round_to_bf16(next);
      done += static_cast<double>(next.size());
      if (progress) progress(done / total);
    };
    if (slot.matrix != nullptr) {
      const tensor::DType type = rounds ? tensor::DType::kBF16 : tensor.type;
      *slot.matrix = device.make_weight(type, tensor.shape.front(), columns, read);
      weights.parameters += tensor.shape.front() * columns;
    } else {
      std::vector<std::byte> bytes(tensor.bytes);
      read(bytes);
      *slot.vector = upload_vector(device, tensor.type, columns, bytes);
      weights.parameters += columns;
    }
  }
  weights.digest = hash.digest();
  return weights;
}

bool all_finite(tensor::DType type, base::Bytes bytes) noexcept {
  switch (type) {
    case tensor::DType::kF32:
      return words_finite<std::uint32_t, 0x7F800000>(bytes);
    case tensor::DType::kF16:
      return words_finite<std::uint16_t, 0x7C00>(bytes);
    case tensor::DType::kBF16:
      return words_finite<std::uint16_t, 0x7F80>(bytes);
    case tensor::DType::kQ8_0:
    case tensor::DType::kQ4_0:
    case tensor::DType::kQ5_0:
      return blocks_finite(bytes, tensor::block_bytes(type), 1);
    case tensor::DType::kQ4_1:
    case tensor::DType::kQ5_1:
    case tensor::DType::kQ4_K:
    case tensor::DType::kQ5_K:
      return blocks_finite(bytes, tensor::block_bytes(type), 2);
    case tensor::DType::kQ6_K:
      return blocks_finite(bytes, sizeof(tensor::BlockQ6_K), 1, offsetof(tensor::BlockQ6_K, d));
  }
  return false;
}

}  // namespace incipit::model
