// SPDX-License-Identifier: Apache-2.0
#include "model/weights_plan.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "model/files.h"

namespace incipit::model {
namespace {

using Matrix = std::unique_ptr<device::Weight>;

RowChoice all_rows(std::uint64_t rows) { return {0, rows, rows, rows}; }

// Lists the slots of a model; they point into `weights`.
class Planner {
 public:
  Planner(const TensorNames& names, std::string_view prefix, const ModelConfig& config,
          ModelWeights& weights)
      : names_(names), prefix_(prefix), config_(config), weights_(weights) {}

  std::vector<WeightSlot> plan() {
    const std::size_t width = config_.width;
    const std::size_t embedding = config_.projects_embedding() ? config_.embedding_width : width;
    add_matrix(name(names_.embedding), config_.vocabulary, embedding, weights_.embedding);
    if (config_.projects_embedding()) {
      add_matrix(name(names_.project_in), width, embedding, weights_.project_in);
      add_matrix(name(names_.project_out), embedding, width, weights_.project_out);
    }
    if (config_.positions == Positions::kLearned) {
      add_matrix(name(names_.positions), config_.context + config_.position_offset, width,
                 weights_.positions);
    }
    if (config_.embedding_norm) add_norm(name(names_.embedding_norm), weights_.embedding_norm);
    weights_.layers.resize(config_.layers);
    for (std::size_t i = 0; i < config_.layers; ++i) {
      layer_ = name(names_.layer) + std::to_string(i) + '.';
      plan_layer(weights_.layers[i]);
    }
    if (config_.final_norm) add_norm(name(names_.final_norm), weights_.final_norm);
    if (!config_.tied_output) {
      add_matrix(std::string(names_.output), config_.vocabulary, embedding, weights_.output);
    }
    return std::move(slots_);
  }

 private:
  std::string name(std::string_view of_model) const { return prefix_ + std::string(of_model); }
  std::string in_layer(std::string_view of_layer) const { return layer_ + std::string(of_layer); }

  void plan_layer(LayerWeights& to) {
    const std::size_t width = config_.width, ffn = config_.ffn_width;
    const std::size_t q_rows = config_.heads * config_.head_dim;
    add_norm(in_layer(names_.attention_norm), to.attention_norm);
    if (names_.fused == FusedQkv::kNone) {
      plan_qkv(to);
    } else {
      plan_fused_qkv(to);
    }
    if (config_.qk_norm) {
      add_vector(in_layer(names_.q_norm), ".weight", config_.head_dim, to.q_norm.weight, true);
      add_vector(in_layer(names_.k_norm), ".weight", config_.head_dim, to.k_norm.weight, true);
    }
    const std::string output = in_layer(names_.attention_output);
    add_layer_matrix(output, width, q_rows, to.output);
    if (config_.output_bias) add_vector(output, ".bias", width, to.output_bias);
    add_norm(in_layer(names_.ffn_norm), to.ffn_norm);
    if (config_.norm_place == NormPlace::kAround) {
      add_norm(in_layer(names_.after_attention_norm), to.after_attention_norm);
      add_norm(in_layer(names_.after_ffn_norm), to.after_ffn_norm);
    }
    if (config_.gated_ffn) add_layer_matrix(in_layer(names_.gate), ffn, width, to.gate);
    add_layer_matrix(in_layer(names_.up), ffn, width, to.up);
    add_layer_matrix(in_layer(names_.down), width, ffn, to.down);
    if (config_.ffn_bias) {
      add_vector(in_layer(names_.up), ".bias", ffn, to.up_bias);
      add_vector(in_layer(names_.down), ".bias", width, to.down_bias);
    }
  }

  struct Projection {
    std::string_view name;
    std::uint64_t rows;
    Matrix* matrix;
    device::Buffer* bias;
  };
  std::array<Projection, 3> projections(LayerWeights& to) const {
    const std::uint64_t q_rows = config_.heads * config_.head_dim;
    const std::uint64_t kv_rows = config_.kv_heads * config_.head_dim;
    return {{{names_.q, q_rows, &to.q, &to.q_bias},
             {names_.k, kv_rows, &to.k, &to.k_bias},
             {names_.v, kv_rows, &to.v, &to.v_bias}}};
  }

  void plan_qkv(LayerWeights& to) {
    for (const Projection& part : projections(to)) {
      add_layer_matrix(in_layer(part.name), part.rows, config_.width, *part.matrix);
      if (config_.qkv_bias) add_vector(in_layer(part.name), ".bias", part.rows, *part.bias);
    }
  }

  // One tensor, of whose rows each part takes its own.
  void plan_fused_qkv(LayerWeights& to) {
    const std::string tensor = in_layer(names_.qkv);
    const bool per_head = names_.fused == FusedQkv::kPerHead;
    const std::uint64_t dim = config_.head_dim;
    std::uint64_t total = 0, number = 0, first = 0;
    for (const Projection& part : projections(to)) total += part.rows;
    for (const Projection& part : projections(to)) {
      const RowChoice rows = per_head ? RowChoice{number * dim, part.rows, dim, 3 * dim}
                                      : RowChoice{first, part.rows, part.rows, part.rows};
      add_layer_matrix(tensor, total, config_.width, *part.matrix, rows);
      if (config_.qkv_bias) {
        add({.name = tensor + ".bias", .shape = {total}, .rows = rows, .vector = part.bias});
      }
      first += part.rows;
      ++number;
    }
  }

  void add_matrix(const std::string& tensor, std::uint64_t rows, std::uint64_t columns,
                  Matrix& to) {
    add({.name = tensor + ".weight",
         .shape = {rows, columns},
         .rows = all_rows(rows),
         .matrix = &to});
  }

  void add_layer_matrix(const std::string& tensor, std::uint64_t rows, std::uint64_t columns,
                        Matrix& to) {
    add_layer_matrix(tensor, rows, columns, to, all_rows(rows));
  }
  void add_layer_matrix(const std::string& tensor, std::uint64_t rows, std::uint64_t columns,
                        Matrix& to, const RowChoice& choice) {
    std::vector<std::uint64_t> shape = {rows, columns};
    if (names_.transposed) std::swap(shape[0], shape[1]);
    add({.name = tensor + ".weight",
         .shape = std::move(shape),
         .rows = choice,
         .transposed = names_.transposed,
         .matrix = &to});
  }

  void add_norm(const std::string& tensor, NormWeights& to) {
    add_vector(tensor, ".weight", config_.width, to.weight, true);
    if (config_.norm == Norm::kLayer) add_vector(tensor, ".bias", config_.width, to.bias);
  }

  void add_vector(const std::string& tensor, const char* suffix, std::uint64_t elements,
                  device::Buffer& to, bool is_norm = false) {
    add({.name = tensor + suffix,
         .shape = {elements},
         .rows = all_rows(elements),
         .from_one = is_norm && names_.norms_from_one,
         .vector = &to});
  }

  void add(WeightSlot slot) { slots_.push_back(std::move(slot)); }

  const TensorNames& names_;
  const std::string prefix_;
  const ModelConfig& config_;
  ModelWeights& weights_;
  std::string layer_;
  std::vector<WeightSlot> slots_;
};

// Tensors that files carry and that nothing is computed from: tables that follow from the config.
bool is_superfluous(const std::string& name, const TensorNames& names, const ModelConfig& config) {
  for (const std::string_view end : names.ignored) {
    if (!end.empty() && name.ends_with(end)) return true;
  }
  return config.tied_output && name == std::string(names.output) + ".weight";
}

std::string_view prefix_in(const TensorSource& source, const TensorNames& names) {
  return source.find(std::string(names.embedding) + ".weight") ? "" : names.prefix;
}

void match(const TensorSource& source, const ModelConfig& config, WeightSlot& slot) {
  slot.tensor = source.find(slot.name);
  if (slot.tensor == nullptr) {
    fail(source.first_file(), "tensor '" + slot.name + "', which a " + config.architecture +
                                  " model needs, is missing; the model is incomplete, fetch it "
                                  "again");
  }
  if (slot.tensor->unread) {
    fail(source.file_of(*slot.tensor),
         "the type of tensor '" + slot.name + "' is " + std::string(slot.tensor->unread->name) +
             "; incipit computes with F32, F16 and BF16 from safetensors");
  }
  if (slot.tensor->shape != slot.shape) {
    fail(source.file_of(*slot.tensor),
         "tensor '" + slot.name + "' has the shape " + to_string(slot.tensor->shape) +
             " where the model's config makes it " + to_string(slot.shape) +
             "; config and weights do not belong together");
  }
  if (slot.transposed && tensor::is_quantized(slot.tensor->type)) {
    fail(source.file_of(*slot.tensor),
         "tensor '" + slot.name + "' is quantised along its outputs, which is not supported");
  }
}

}  // namespace

std::vector<WeightSlot> plan_weights(const TensorSource& source, const TensorNames& names,
                                     const ModelConfig& config, ModelWeights& weights) {
  std::vector<WeightSlot> slots = Planner(names, prefix_in(source, names), config, weights).plan();
  std::sort(slots.begin(), slots.end(), [](const WeightSlot& a, const WeightSlot& b) {
    return std::tie(a.name, a.rows.first) < std::tie(b.name, b.rows.first);
  });
  for (WeightSlot& slot : slots) match(source, config, slot);
  // Both lists are sorted by name, and each slot has its tensor.
  auto slot = slots.begin();
  for (const TensorInfo& tensor : source.tensors()) {
    if (slot != slots.end() && slot->name == tensor.name) {
      while (slot != slots.end() && slot->name == tensor.name) ++slot;
    } else if (!is_superfluous(tensor.name, names, config)) {
      fail(source.file_of(tensor), "tensor '" + tensor.name + "' has no place in a " +
                                       config.architecture +
                                       " model as incipit knows it; the model would be computed "
                                       "without it, so it is not supported");
    }
  }
  return slots;
}

}  // namespace incipit::model
