// SPDX-License-Identifier: Apache-2.0
#include "model/transformer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "model/rope.h"

namespace incipit::model {

using device::Product;
using tensor::ConstMatrix;
using tensor::Matrix;

namespace {

// Rows whose logits are computed at a time: bounds the memory that a whole prompt's logits take.
constexpr std::size_t kLogitsSlice = 32;

constexpr std::size_t kAlignment = 16;  // floats, 64 bytes

std::size_t aligned(std::size_t floats) {
  return (floats + kAlignment - 1) / kAlignment * kAlignment;
}

std::span<const float> vector_of(const device::Buffer& buffer) { return buffer.as<const float>(); }

// x [rows, count * dim] as [rows * count, dim].
Matrix per_head(Matrix x, std::size_t dim) {
  return {x.data, x.rows * (x.columns / dim), dim, dim};
}

}  // namespace

/// A step of the device, which ends, whatever happens.
class Transformer::Step {
 public:
  Step(device::Device& device, std::size_t rows) : device_(device) { device.begin_step(rows); }
  ~Step() {
    try {
      end();
    } catch (const Error&) {  // one is under way already, or comes again with the next operation
    }
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  /// More than once does nothing more.
  void end() {
    if (!std::exchange(ended_, true)) device_.end_step();
  }

 private:
  device::Device& device_;
  bool ended_ = false;
};

Transformer::Transformer(device::Device& device, ModelConfig config, ModelWeights weights)
    : device_(device), config_(std::move(config)), weights_(std::move(weights)) {
  INCIPIT_CHECK(weights_.layers.size() == config_.layers);
  INCIPIT_CHECK(config_.windowed_layers.empty() ||
                (config_.windowed_layers.size() == config_.layers && config_.window > 0));
  attention_scale_ = config_.attention_scale > 0.0f
                         ? config_.attention_scale
                         : 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  for (std::size_t layer = 0; layer < config_.layers; ++layer) {
    (config_.is_windowed(layer) ? any_windowed_layer_ : any_whole_layer_) = true;
  }
  if (config_.positions == Positions::kAlibi) {
    const std::vector<float> slopes = alibi_slopes(config_.heads);
    alibi_slopes_ = device.allocate(slopes.size() * sizeof(float));
    device.upload(std::as_bytes(std::span(slopes)), alibi_slopes_.data());
  }
}

void Transformer::forward(const device::KvPoolView& pool, const ForwardBatch& batch,
                          const LogitsSink& sink) {
  place_rows(batch);
  const Scratch s = scratch(batch.ids.size());
  prepare_angles(s);
  plan_attention(batch.sequences);

  Step step(device_, batch.ids.size());
  embed(batch.ids, s);
  for (std::size_t layer = 0; layer + 1 < config_.layers; ++layer) whole_layer(pool, layer, s);
  keep_tails(batch);
  if (tail_rows_.size() == batch.ids.size()) {
    whole_layer(pool, config_.layers - 1, s);
    output_logits(step, batch.logit_rows, s.x, sink);
  } else {
    const Scratch tail = last_layer(pool, s);
    output_logits(step, tail_logit_rows_, tail.x, sink);
  }
  step.end();
  device_.finish();
}

void Transformer::prepare_angles(const Scratch& s) {
  const auto prepare = [&](std::span<const float> frequencies, Matrix angles) {
    host_angles_.resize(angles.rows * angles.columns);
    rope_angles(positions_, frequencies,
                {host_angles_.data(), angles.rows, angles.columns, angles.columns});
    device_.upload(std::as_bytes(std::span(host_angles_)),
                   reinterpret_cast<std::byte*>(angles.data));
  };
  if (config_.positions != Positions::kRope) return;
  prepare(config_.rope_frequencies, s.angles);
  if (has_local_angles()) prepare(config_.local_rope_frequencies, s.local_angles);
}

void Transformer::plan_attention(std::span<const device::SequenceRows> sequences) {
  const device::PlanOptions& options = device_.info().plan;
  if (any_whole_layer_) whole_plan_ = device::plan_attention(sequences, options);
  if (any_windowed_layer_) {
    windowed_plan_ = device::plan_attention(sequences, options, config_.window);
  }
}

void Transformer::embed(std::span<const TokenId> ids, const Scratch& s) {
  if (config_.projects_embedding()) {
    device_.embed(*weights_.embedding, ids, config_.embedding_scale, s.embedded);
    const std::array wider = {Product{weights_.project_in.get(), {}, s.x}};
    device_.matmul(s.embedded, wider);
  } else {
    device_.embed(*weights_.embedding, ids, config_.embedding_scale, s.x);
  }
  if (config_.positions == Positions::kLearned) {
    position_rows_.clear();
    for (const std::uint32_t position : positions_) {
      position_rows_.push_back(static_cast<std::int32_t>(position + config_.position_offset));
    }
    device_.embed(*weights_.positions, position_rows_, 1.0f, s.h);
    device_.add(s.x, s.h);
  }
  if (config_.embedding_norm) normalise(s.x, weights_.embedding_norm, s.x);
}

void Transformer::place_rows(const ForwardBatch& batch) {
  positions_.clear();
  slots_.clear();
  for (const device::SequenceRows& sequence : batch.sequences) {
    for (std::uint32_t i = 0; i < sequence.rows; ++i) {
      const std::uint32_t position = sequence.first_position + i;
      const std::size_t block = position / device::kBlockTokens;
      INCIPIT_CHECK(block < sequence.blocks.size());
      positions_.push_back(position);
      slots_.push_back(
          {sequence.blocks[block], static_cast<std::uint32_t>(position % device::kBlockTokens)});
    }
  }
  INCIPIT_CHECK(positions_.size() == batch.ids.size());
}

void Transformer::keep_tails(const ForwardBatch& batch) {
  INCIPIT_CHECK(std::ranges::is_sorted(batch.logit_rows));
  tail_rows_.clear();
  tail_sequences_.clear();
  tail_logit_rows_.clear();
  auto wanted = batch.logit_rows.begin();
  std::uint32_t row = 0;
  for (const device::SequenceRows& sequence : batch.sequences) {
    const std::uint32_t end = row + sequence.rows;
    if (wanted != batch.logit_rows.end() && *wanted < end) {
      const std::uint32_t first = *wanted, skipped = first - row;
      tail_sequences_.push_back(
          {sequence.blocks, sequence.first_position + skipped, sequence.rows - skipped});
      for (; wanted != batch.logit_rows.end() && *wanted < end; ++wanted) {
        tail_logit_rows_.push_back(static_cast<std::uint32_t>(tail_rows_.size()) + *wanted - first);
      }
      for (std::uint32_t kept = first; kept < end; ++kept) tail_rows_.push_back(kept);
    }
    row = end;
  }
  INCIPIT_CHECK(wanted == batch.logit_rows.end());
}

void Transformer::whole_layer(const device::KvPoolView& pool, std::size_t layer, const Scratch& s) {
  const LayerWeights& w = weights_.layers[layer];
  const std::array inputs = {Product{w.q.get(), vector_of(w.q_bias), s.q},
                             Product{w.k.get(), vector_of(w.k_bias), s.k},
                             Product{w.v.get(), vector_of(w.v_bias), s.v}};
  device_.matmul(branch_input(w.attention_norm, s), inputs);
  turn_queries(layer, s);
  write_keys(pool, layer, s);
  attend(pool, layer, config_.is_windowed(layer) ? windowed_plan_ : whole_plan_, s);
  ffn_branch(w, s);
}

/// All rows leave their K and V; only the tails go on.
Transformer::Scratch Transformer::last_layer(const device::KvPoolView& pool, const Scratch& s) {
  const std::size_t layer = config_.layers - 1;
  const LayerWeights& w = weights_.layers[layer];
  const std::array keys = {Product{w.k.get(), vector_of(w.k_bias), s.k},
                           Product{w.v.get(), vector_of(w.v_bias), s.v}};
  device_.matmul(branch_input(w.attention_norm, s), keys);
  write_keys(pool, layer, s);

  Scratch tail = s;
  tail.x = s.tail_x;
  tail.angles = tail.local_angles = s.tail_angles;
  for (Matrix* const view : {&tail.x, &tail.angles, &tail.local_angles, &tail.h, &tail.q,
                             &tail.attended, &tail.gate, &tail.up}) {
    view->rows = tail_rows_.size();
  }
  if (tail_rows_.empty()) return tail;
  device_.gather_rows(s.x, tail_rows_, tail.x);
  if (config_.positions == Positions::kRope) {
    device_.gather_rows(angles_of(layer, s), tail_rows_, tail.angles);
  }
  const std::array queries = {Product{w.q.get(), vector_of(w.q_bias), tail.q}};
  device_.matmul(branch_input(w.attention_norm, tail), queries);
  turn_queries(layer, tail);
  tail_plan_ =
      device::plan_attention(tail_sequences_, device_.info().plan, config_.window_of(layer));
  attend(pool, layer, tail_plan_, tail);
  ffn_branch(w, tail);
  return tail;
}

ConstMatrix Transformer::branch_input(const NormWeights& norm, const Scratch& s) {
  if (config_.norm_place == NormPlace::kAfter) return s.x;
  normalise(s.x, norm, s.h);
  return s.h;
}

void Transformer::end_branch(const NormWeights& norm, const NormWeights& after, const Scratch& s) {
  if (config_.norm_place == NormPlace::kAround) normalise(s.h, after, s.h);
  device_.add(s.x, s.h);
  if (config_.norm_place == NormPlace::kAfter) normalise(s.x, norm, s.x);
}

void Transformer::normalise(ConstMatrix x, const NormWeights& norm, Matrix out) {
  if (config_.norm == Norm::kLayer) {
    device_.layer_norm(x, vector_of(norm.weight), vector_of(norm.bias), config_.norm_epsilon, out);
  } else {
    device_.rms_norm(x, vector_of(norm.weight), config_.norm_epsilon, out);
  }
}

void Transformer::normalise_heads(Matrix x, const NormWeights& norm) {
  if (!config_.qk_norm) return;
  const Matrix heads = per_head(x, config_.head_dim);
  device_.rms_norm(heads, vector_of(norm.weight), config_.norm_epsilon, heads);
}

void Transformer::turn(std::size_t layer, Matrix x, const Scratch& s) {
  if (config_.positions != Positions::kRope) return;
  device_.rope(x, config_.head_dim, angles_of(layer, s), config_.rope_pairs);
}

void Transformer::turn_queries(std::size_t layer, const Scratch& s) {
  normalise_heads(s.q, weights_.layers[layer].q_norm);
  turn(layer, s.q, s);
}

void Transformer::write_keys(const device::KvPoolView& pool, std::size_t layer, const Scratch& s) {
  normalise_heads(s.k, weights_.layers[layer].k_norm);
  turn(layer, s.k, s);
  device_.append_kv(pool, layer, s.k, s.v, slots_);
}

void Transformer::attend(const device::KvPoolView& pool, std::size_t layer,
                         const device::AttentionPlan& plan, const Scratch& s) {
  const LayerWeights& w = weights_.layers[layer];
  device::AttentionParams params;
  params.layer = layer;
  params.heads = config_.heads;
  params.scale = attention_scale_;
  params.soft_cap = config_.attention_soft_cap;
  params.window = config_.window_of(layer);
  params.alibi_slopes = vector_of(alibi_slopes_);
  device_.attention(pool, params, plan, s.q, s.attended);
  const std::array output = {Product{w.output.get(), vector_of(w.output_bias), s.h}};
  device_.matmul(s.attended, output);
  end_branch(w.attention_norm, w.after_attention_norm, s);
}

void Transformer::ffn_branch(const LayerWeights& w, const Scratch& s) {
  const std::array inputs = {Product{w.up.get(), vector_of(w.up_bias), s.up},
                             Product{w.gate.get(), {}, s.gate}};
  device_.matmul(branch_input(w.ffn_norm, s), std::span(inputs).first(config_.gated_ffn ? 2 : 1));
  if (config_.gated_ffn) {
    device_.activate(config_.activation, s.gate, s.up, s.up);
  } else {
    device_.activate(config_.activation, s.up, {}, s.up);
  }
  const std::array output = {Product{w.down.get(), vector_of(w.down_bias), s.h}};
  device_.matmul(s.up, output);
  end_branch(w.ffn_norm, w.after_ffn_norm, s);
}

void Transformer::output_logits(Step& step, std::span<const std::uint32_t> wanted, ConstMatrix x,
                                const LogitsSink& sink) {
  if (wanted.empty()) return;
  const std::size_t width = config_.width, vocabulary = config_.vocabulary;
  const std::size_t narrow = config_.projects_embedding() ? config_.embedding_width : 0;
  const std::size_t states = aligned(kLogitsSlice * width);
  const std::size_t projected = aligned(kLogitsSlice * narrow);
  if (logits_memory_.bytes() == 0) {
    logits_memory_ =
        device_.allocate((states + projected + kLogitsSlice * vocabulary) * sizeof(float));
  }
  float* const memory = logits_memory_.as<float>().data();
  for (std::size_t first = 0; first < wanted.size(); first += kLogitsSlice) {
    const std::size_t rows = std::min(kLogitsSlice, wanted.size() - first);
    const Matrix logits = {memory + states + projected, rows, vocabulary, vocabulary};
    const Matrix state = {memory, rows, width, width};
    device_.gather_rows(x, wanted.subspan(first, rows), state);
    project_logits(state, {memory + states, rows, narrow, narrow}, logits);
    step.end();  // the logits are there
    sink(first, on_host(logits));
  }
}

/// Final states become logits; `projected` is room for them in the width of the embedding.
void Transformer::project_logits(Matrix state, Matrix projected, Matrix logits) {
  if (config_.final_norm) normalise(state, weights_.final_norm, state);
  if (config_.projects_embedding()) {
    const std::array narrower = {Product{weights_.project_out.get(), {}, projected}};
    device_.matmul(state, narrower);
    state = projected;
  }
  const device::Weight& output = weights_.output ? *weights_.output : *weights_.embedding;
  const std::array product = {Product{&output, {}, logits}};
  device_.matmul(state, product);
  if (config_.logit_soft_cap > 0.0f) device_.soft_cap(logits, config_.logit_soft_cap);
}

ConstMatrix Transformer::on_host(ConstMatrix logits) {
  if (device_.info().host_memory) return logits;
  const std::size_t values = logits.rows * logits.columns;
  if (host_logits_.size() < values) host_logits_.resize(values);
  device_.download(reinterpret_cast<const std::byte*>(logits.data),
                   std::as_writable_bytes(std::span(host_logits_).first(values)));
  return {host_logits_.data(), logits.rows, logits.columns, logits.columns};
}

Transformer::Scratch Transformer::scratch(std::size_t rows) {
  Scratch s;
  const std::size_t heads = config_.heads * config_.head_dim;
  const std::size_t kv_heads = config_.kv_heads * config_.head_dim;
  const std::size_t angles =
      config_.positions == Positions::kRope ? 2 * config_.rope_frequencies.size() : 0;
  const std::array<std::pair<Matrix*, std::size_t>, 13> shapes = {{
      {&s.x, config_.width},
      {&s.h, config_.width},
      {&s.embedded, config_.projects_embedding() ? config_.embedding_width : 0},
      {&s.q, heads},
      {&s.k, kv_heads},
      {&s.v, kv_heads},
      {&s.attended, heads},
      {&s.gate, config_.gated_ffn ? config_.ffn_width : 0},
      {&s.up, config_.ffn_width},
      {&s.angles, angles},
      {&s.local_angles, has_local_angles() ? angles : 0},
      {&s.tail_x, config_.width},
      {&s.tail_angles, angles},
  }};
  if (rows > capacity_) {
    std::size_t floats = 0;
    for (const auto& [view, columns] : shapes) floats += aligned(rows * columns);
    memory_ = device_.allocate(floats * sizeof(float));
    capacity_ = rows;
  }
  float* next = memory_.as<float>().data();
  for (const auto& [view, columns] : shapes) {
    *view = {next, rows, columns, columns};
    next += aligned(rows * columns);
  }
  return s;
}

}  // namespace incipit::model
