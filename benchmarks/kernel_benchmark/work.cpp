// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/kernel_benchmark/work.h"

#include <algorithm>
#include <random>

#include "support/random_matrix.h"

namespace bench {

namespace device = incipit::device;
namespace testing = incipit::testing;
using device::kBlockTokens;

const WorkShape& cpu_shape() {
  static const WorkShape shape = {.width = 1024,
                                  .kv_width = 256,
                                  .ffn_width = 4096,
                                  .layers = 30,
                                  .heads = 9,
                                  .kv_heads = 3,
                                  .head_dim = 64,
                                  .cached_tokens = 4096,
                                  .norm_width = 2048,
                                  .sum_width = 1024,
                                  .product_rows = {1, 8, 16, 64, 512},
                                  .samples = {1, 8, 16},
                                  .rows = {1, 16, 512}};
  return shape;
}

const WorkShape& gpu_shape() {
  static const WorkShape shape = {.width = 4096,
                                  .kv_width = 1024,
                                  .ffn_width = 14336,
                                  .layers = 8,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = 128,
                                  .cached_tokens = 8192,
                                  .norm_width = 4096,
                                  .sum_width = 4096,
                                  .product_rows = {1, 8, 32, 128, 2048},
                                  .samples = {1, 8, 32},
                                  .rows = {64, 16384},
                                  .queued = 16};
  return shape;
}

DeviceMatrix::DeviceMatrix(Device& device, std::size_t rows, std::size_t columns)
    : rows_(rows), columns_(columns), buffer_(device.allocate(rows * columns * sizeof(float))) {
  // Large ones repeat themselves: chance takes longer than any kernel.
  constexpr std::size_t kDifferent = std::size_t{1} << 20;
  std::mt19937 random(1);
  const auto values = testing::random_floats(random, std::min(rows * columns, kDifferent));
  const auto bytes = std::as_bytes(std::span(values));
  for (std::size_t at = 0; at < rows * columns * sizeof(float); at += bytes.size()) {
    const std::size_t left = rows * columns * sizeof(float) - at;
    device.upload(bytes.first(std::min(bytes.size(), left)), buffer_.data() + at);
  }
}

Layers::Layers(Device& device, const WorkShape& shape, DType type)
    : device_(device),
      groups_({{shape.width, {shape.width, shape.kv_width, shape.kv_width}},  // q, k, v
               {shape.width, {shape.width}},                                  // attention's output
               {shape.width, {shape.ffn_width, shape.ffn_width}},             // gate, up
               {shape.ffn_width, {shape.width}}}) {                           // down
  std::mt19937 random(1);
  std::vector<std::vector<std::byte>> layer;
  for (const Group& group : groups_) {
    for (const std::size_t outputs : group.outputs) {
      layer.push_back(testing::random_weight(random, type, outputs, group.inputs));
      parameters_ += static_cast<double>(outputs * group.inputs);
      bytes_ += static_cast<double>(layer.back().size());
    }
  }
  constexpr double kEnough = 128 << 20;
  for (double bytes = 0; bytes < kEnough; bytes += bytes_) {
    auto file = layer.begin();
    for (const Group& group : groups_) {
      for (const std::size_t outputs : group.outputs) {
        weights_.push_back(device.make_weight(type, outputs, group.inputs, *file++));
      }
    }
  }
}

void Layers::set_rows(std::size_t rows) {
  in_.clear();
  out_.clear();
  for (const Group& group : groups_) {
    in_.emplace_back(device_, rows, group.inputs);
    for (const std::size_t outputs : group.outputs) out_.emplace_back(device_, rows, outputs);
  }
}

void Layers::run() {
  if (next_ == weights_.size()) next_ = 0;
  auto out = out_.begin();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::vector<device::Product> products;
    for (std::size_t j = 0; j < groups_[i].outputs.size(); ++j) {
      products.push_back({.weight = weights_[next_++].get(), .out = (out++)->view()});
    }
    device_.matmul(in_[i].view(), products);
  }
}

Attention::Attention(Device& device, const WorkShape& shape, KvFormat format,
                     const Sequences& sequences)
    : device_(device),
      layout_({shape.layers, shape.kv_heads, shape.head_dim, format}),
      heads_(shape.heads),
      rows_(sequences.count * sequences.rows),
      q_(device, rows_, query_width()),
      out_(device, rows_, query_width()) {
  constexpr auto kTokens = static_cast<std::uint32_t>(kBlockTokens);
  const std::uint32_t cached = sequences.cached / kTokens;  // blocks
  const std::uint32_t shared = sequences.share ? cached : 0;
  const std::uint32_t own = (sequences.rows + kTokens - 1) / kTokens + (cached - shared);
  blocks_ = shared + sequences.count * own;
  pool_ = device.allocate(blocks_ * layout_.block_bytes());
  fill();
  std::vector<device::SequenceRows> batch;
  tables_.resize(sequences.count);
  for (std::uint32_t i = 0; i < sequences.count; ++i) {
    for (std::uint32_t block = 0; block < shared; ++block) tables_[i].push_back(block);
    for (std::uint32_t block = 0; block < own; ++block) {
      tables_[i].push_back(shared + i * own + block);
    }
    batch.push_back({tables_[i], sequences.cached, sequences.rows});
  }
  plan_ = device::plan_attention(batch, device.info().plan);
  const double pairs =
      static_cast<double>(rows_) * (sequences.cached + 0.5 * (sequences.rows + 1.0));
  flops_ = 4.0 * static_cast<double>(shape.layers * query_width()) * pairs;
}

void Attention::run() {
  for (std::size_t layer = 0; layer < layout_.shape().layers; ++layer) {
    device_.attention(pool(), {.layer = layer, .heads = heads_, .scale = 0.125f}, plan_, q_.view(),
                      out_.view());
  }
}

void Attention::fill() {
  constexpr std::uint32_t kTogether = 256;  // blocks
  const device::KvShape& shape = layout_.shape();
  const DeviceMatrix k(device_, kTogether * kBlockTokens, shape.kv_heads * shape.head_dim);
  for (std::uint32_t first = 0; first < blocks_; first += kTogether) {
    std::vector<device::KvSlot> slots;
    for (std::uint32_t block = first; block < std::min(first + kTogether, blocks_); ++block) {
      for (std::uint32_t token = 0; token < kBlockTokens; ++token) slots.push_back({block, token});
    }
    const auto rows = k.view().first_rows(slots.size());
    for (std::size_t layer = 0; layer < shape.layers; ++layer) {
      device_.append_kv(pool(), layer, rows, rows, slots);
    }
  }
  device_.finish();
}

}  // namespace bench
