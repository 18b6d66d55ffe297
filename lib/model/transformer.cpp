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

Transformer::Transformer(device::Device& device, ModelConfig config, ModelWeights weights)
    : device_(device), config_(std::move(config)), weights_(std::move(weights)) {
  INCIPIT_CHECK(weights_.layers.size() == config_.layers);
}

void Transformer::forward(const device::KvPoolView& pool, const ForwardBatch& batch,
                          const LogitsSink& sink) {
  place_rows(batch);
  const Scratch s = scratch(batch.ids.size());
  host_angles_.resize(s.angles.rows * s.angles.columns);
  rope_angles(positions_, config_.rope_frequencies,
              {host_angles_.data(), s.angles.rows, s.angles.columns, s.angles.columns});
  device_.upload(std::as_bytes(std::span(host_angles_)),
                 reinterpret_cast<std::byte*>(s.angles.data));
  plan_ = device::plan_attention(batch.sequences, device_.info().plan);

  device_.embed(*weights_.embedding, batch.ids, s.x);
  for (std::size_t layer = 0; layer + 1 < config_.layers; ++layer) whole_layer(pool, layer, s);
  keep_tails(batch);
  if (tail_rows_.size() == batch.ids.size()) {
    whole_layer(pool, config_.layers - 1, s);
    output_logits(batch.logit_rows, s.x, sink);
  } else {
    const Scratch tail = last_layer(pool, s);
    output_logits(tail_logit_rows_, tail.x, sink);
  }
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
  device_.rms_norm(s.x, vector_of(w.attention_norm), config_.norm_epsilon, s.h);
  const std::array inputs = {Product{w.q.get(), vector_of(w.q_bias), s.q},
                             Product{w.k.get(), vector_of(w.k_bias), s.k},
                             Product{w.v.get(), vector_of(w.v_bias), s.v}};
  device_.matmul(s.h, inputs);
  turn_queries(w, s);
  write_keys(pool, layer, s);
  attend(pool, layer, plan_, s);
  ffn_branch(w, s);
}

/// All rows leave their K and V; only the tails go on.
Transformer::Scratch Transformer::last_layer(const device::KvPoolView& pool, const Scratch& s) {
  const std::size_t layer = config_.layers - 1;
  const LayerWeights& w = weights_.layers[layer];
  device_.rms_norm(s.x, vector_of(w.attention_norm), config_.norm_epsilon, s.h);
  const std::array keys = {Product{w.k.get(), vector_of(w.k_bias), s.k},
                           Product{w.v.get(), vector_of(w.v_bias), s.v}};
  device_.matmul(s.h, keys);
  write_keys(pool, layer, s);

  Scratch tail = s;
  tail.x = s.tail_x;
  tail.angles = s.tail_angles;
  for (Matrix* const view :
       {&tail.x, &tail.angles, &tail.h, &tail.q, &tail.attended, &tail.gate, &tail.up}) {
    view->rows = tail_rows_.size();
  }
  if (tail_rows_.empty()) return tail;
  device_.gather_rows(s.x, tail_rows_, tail.x);
  device_.gather_rows(s.angles, tail_rows_, tail.angles);
  device_.rms_norm(tail.x, vector_of(w.attention_norm), config_.norm_epsilon, tail.h);
  const std::array queries = {Product{w.q.get(), vector_of(w.q_bias), tail.q}};
  device_.matmul(tail.h, queries);
  turn_queries(w, tail);
  tail_plan_ = device::plan_attention(tail_sequences_, device_.info().plan);
  attend(pool, layer, tail_plan_, tail);
  ffn_branch(w, tail);
  return tail;
}

void Transformer::turn_queries(const LayerWeights& w, const Scratch& s) {
  if (config_.qk_norm) {
    const Matrix q = per_head(s.q, config_.head_dim);
    device_.rms_norm(q, vector_of(w.q_norm), config_.norm_epsilon, q);
  }
  device_.rope(s.q, config_.head_dim, s.angles, config_.rope_pairs);
}

void Transformer::write_keys(const device::KvPoolView& pool, std::size_t layer, const Scratch& s) {
  if (config_.qk_norm) {
    const Matrix k = per_head(s.k, config_.head_dim);
    device_.rms_norm(k, vector_of(weights_.layers[layer].k_norm), config_.norm_epsilon, k);
  }
  device_.rope(s.k, config_.head_dim, s.angles, config_.rope_pairs);
  device_.append_kv(pool, layer, s.k, s.v, slots_);
}

void Transformer::attend(const device::KvPoolView& pool, std::size_t layer,
                         const device::AttentionPlan& plan, const Scratch& s) {
  device::AttentionParams params;
  params.layer = layer;
  params.heads = config_.heads;
  params.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  device_.attention(pool, params, plan, s.q, s.attended);
  const std::array output = {Product{weights_.layers[layer].output.get(), {}, s.h}};
  device_.matmul(s.attended, output);
  device_.add(s.x, s.h);
}

void Transformer::ffn_branch(const LayerWeights& w, const Scratch& s) {
  device_.rms_norm(s.x, vector_of(w.ffn_norm), config_.norm_epsilon, s.h);
  const std::array inputs = {Product{w.gate.get(), {}, s.gate}, Product{w.up.get(), {}, s.up}};
  device_.matmul(s.h, inputs);
  device_.swiglu(s.gate, s.up, s.gate);
  const std::array output = {Product{w.down.get(), {}, s.h}};
  device_.matmul(s.gate, output);
  device_.add(s.x, s.h);
}

void Transformer::output_logits(std::span<const std::uint32_t> wanted, ConstMatrix x,
                                const LogitsSink& sink) {
  if (wanted.empty()) return;
  const device::Weight& output = weights_.output ? *weights_.output : *weights_.embedding;
  const std::size_t width = config_.width;
  const std::size_t vocabulary = output.rows();
  const std::size_t states = aligned(kLogitsSlice * width);
  if (logits_memory_.bytes() == 0) {
    logits_memory_ = device_.allocate((states + kLogitsSlice * vocabulary) * sizeof(float));
  }
  float* const memory = logits_memory_.as<float>().data();
  for (std::size_t first = 0; first < wanted.size(); first += kLogitsSlice) {
    const std::size_t rows = std::min(kLogitsSlice, wanted.size() - first);
    const Matrix state = {memory, rows, width, width};
    const Matrix logits = {memory + states, rows, vocabulary, vocabulary};
    device_.gather_rows(x, wanted.subspan(first, rows), state);
    device_.rms_norm(state, vector_of(weights_.final_norm), config_.norm_epsilon, state);
    const std::array product = {Product{&output, {}, logits}};
    device_.matmul(state, product);
    sink(first, on_host(logits));
  }
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
  const std::array<std::pair<Matrix*, std::size_t>, 11> shapes = {{
      {&s.x, config_.width},
      {&s.h, config_.width},
      {&s.q, heads},
      {&s.k, kv_heads},
      {&s.v, kv_heads},
      {&s.attended, heads},
      {&s.gate, config_.ffn_width},
      {&s.up, config_.ffn_width},
      {&s.angles, 2 * config_.rope_frequencies.size()},
      {&s.tail_x, config_.width},
      {&s.tail_angles, 2 * config_.rope_frequencies.size()},
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
