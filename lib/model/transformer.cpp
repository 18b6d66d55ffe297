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
  for (std::size_t layer = 0; layer < config_.layers; ++layer) {
    attention_branch(pool, layer, s);
    ffn_branch(weights_.layers[layer], s);
  }
  if (!batch.logit_rows.empty()) output_logits(batch, s.x, sink);
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

void Transformer::attention_branch(const device::KvPoolView& pool, std::size_t layer,
                                   const Scratch& s) {
  const LayerWeights& w = weights_.layers[layer];
  device_.rms_norm(s.x, vector_of(w.attention_norm), config_.norm_epsilon, s.h);
  const std::array inputs = {Product{w.q.get(), vector_of(w.q_bias), s.q},
                             Product{w.k.get(), vector_of(w.k_bias), s.k},
                             Product{w.v.get(), vector_of(w.v_bias), s.v}};
  device_.matmul(s.h, inputs);
  if (config_.qk_norm) {
    const Matrix q = per_head(s.q, config_.head_dim);
    const Matrix k = per_head(s.k, config_.head_dim);
    device_.rms_norm(q, vector_of(w.q_norm), config_.norm_epsilon, q);
    device_.rms_norm(k, vector_of(w.k_norm), config_.norm_epsilon, k);
  }
  device_.rope(s.q, config_.head_dim, s.angles, config_.rope_pairs);
  device_.rope(s.k, config_.head_dim, s.angles, config_.rope_pairs);
  device_.append_kv(pool, layer, s.k, s.v, slots_);

  device::AttentionParams params;
  params.layer = layer;
  params.heads = config_.heads;
  params.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  device_.attention(pool, params, plan_, s.q, s.attended);

  const std::array output = {Product{w.output.get(), {}, s.h}};
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

void Transformer::output_logits(const ForwardBatch& batch, ConstMatrix x, const LogitsSink& sink) {
  const device::Weight& output = weights_.output ? *weights_.output : *weights_.embedding;
  const std::size_t width = config_.width;
  const std::size_t vocabulary = output.rows();
  const std::size_t states = aligned(kLogitsSlice * width);
  if (logits_memory_.bytes() == 0) {
    logits_memory_ = device_.allocate((states + kLogitsSlice * vocabulary) * sizeof(float));
  }
  float* const memory = logits_memory_.as<float>().data();
  for (std::size_t first = 0; first < batch.logit_rows.size(); first += kLogitsSlice) {
    const std::size_t rows = std::min(kLogitsSlice, batch.logit_rows.size() - first);
    const Matrix state = {memory, rows, width, width};
    const Matrix logits = {memory + states, rows, vocabulary, vocabulary};
    device_.gather_rows(x, batch.logit_rows.subspan(first, rows), state);
    device_.rms_norm(state, vector_of(weights_.final_norm), config_.norm_epsilon, state);
    const std::array product = {Product{&output, {}, logits}};
    device_.matmul(state, product);
    if (host_logits_.size() < rows * vocabulary) host_logits_.resize(rows * vocabulary);
    device_.download(reinterpret_cast<const std::byte*>(logits.data),
                     std::as_writable_bytes(std::span(host_logits_).first(rows * vocabulary)));
    sink(first, {host_logits_.data(), rows, vocabulary, vocabulary});
  }
}

Transformer::Scratch Transformer::scratch(std::size_t rows) {
  Scratch s;
  const std::size_t heads = config_.heads * config_.head_dim;
  const std::size_t kv_heads = config_.kv_heads * config_.head_dim;
  const std::array<std::pair<Matrix*, std::size_t>, 9> shapes = {{
      {&s.x, config_.width},
      {&s.h, config_.width},
      {&s.q, heads},
      {&s.k, kv_heads},
      {&s.v, kv_heads},
      {&s.attended, heads},
      {&s.gate, config_.ffn_width},
      {&s.up, config_.ffn_width},
      {&s.angles, 2 * config_.rope_frequencies.size()},
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
