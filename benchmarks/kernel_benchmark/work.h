// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_KERNEL_BENCHMARK_WORK_H_
#define INCIPIT_BENCHMARKS_KERNEL_BENCHMARK_WORK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/attention_plan.h"
#include "device/device.h"

// What a device is measured with: matrices, products and attention of a model, in its memory.

namespace bench {

using incipit::device::Device;
using incipit::device::KvFormat;
using incipit::tensor::DType;

/// How large the work is: what fills some cores of a CPU does not fill a GPU.
struct WorkShape {
  std::size_t width, kv_width, ffn_width;                 // of a layer's products
  std::size_t layers, heads, kv_heads, head_dim;          // of attention
  std::uint32_t cached_tokens;                            // that decoding sees
  std::size_t norm_width, sum_width;                      // of rows
  std::vector<std::int64_t> product_rows, samples, rows;  // sizes that are measured
  std::size_t queued = 1;                                 // calls before the device is waited for
};
const WorkShape& cpu_shape();  // attention's is that of SmolLM2-135M
const WorkShape& gpu_shape();  // that of LLaMA 3 8B, with fewer layers

/// Random floats in the memory of a device.
class DeviceMatrix {
 public:
  DeviceMatrix(Device& device, std::size_t rows, std::size_t columns);

  incipit::tensor::Matrix view() const {
    return {buffer_.as<float>().data(), rows_, columns_, columns_};
  }
  std::span<const float> values() const { return buffer_.as<float>().first(rows_ * columns_); }

 private:
  std::size_t rows_, columns_;
  incipit::device::Buffer buffer_;
};

/// A layer's products as a model has them, of random weights; layers enough that no cache holds
/// them all.
class Layers {
 public:
  Layers(Device& device, const WorkShape& shape, DType type);

  double parameters() const { return parameters_; }  // of a layer
  double bytes() const { return bytes_; }            // of a layer, in a file

  /// Makes the inputs and outputs of so many rows.
  void set_rows(std::size_t rows);
  /// All products of the next layer.
  void run();

 private:
  struct Group {  // one input, several weights
    std::size_t inputs;
    std::vector<std::size_t> outputs;
  };

  Device& device_;
  std::vector<Group> groups_;
  std::vector<std::unique_ptr<incipit::device::Weight>> weights_ = {};
  std::vector<DeviceMatrix> in_ = {}, out_ = {};  // [groups], [weights of a layer]
  double parameters_ = 0, bytes_ = 0;
  std::size_t next_ = 0;
};

/// Attention of all layers: `sequences`, which bring `rows` new tokens each behind `cached` ones,
/// either the same for all or each its own.
class Attention {
 public:
  struct Sequences {
    std::uint32_t count = 1, cached = 0, rows = 1;
    bool share = true;
  };
  Attention(Device& device, const WorkShape& shape, KvFormat format, const Sequences& sequences);

  double flops() const { return flops_; }
  double bytes() const { return static_cast<double>(pool_.bytes()); }  // of KV

  void run();

 private:
  incipit::device::KvPoolView pool() const { return {pool_.data(), blocks_, layout_}; }
  std::size_t query_width() const { return heads_ * layout_.shape().head_dim; }
  void fill();

  Device& device_;
  incipit::device::KvLayout layout_;
  std::size_t heads_, rows_;  // rows: of all sequences
  std::uint32_t blocks_ = 0;
  incipit::device::Buffer pool_ = {};
  std::vector<std::vector<incipit::device::BlockId>> tables_ = {};
  incipit::device::AttentionPlan plan_ = {};
  DeviceMatrix q_, out_;
  double flops_ = 0;
};

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_KERNEL_BENCHMARK_WORK_H_
