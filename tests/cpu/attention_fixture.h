// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_CPU_ATTENTION_FIXTURE_H_
#define INCIPIT_TESTS_CPU_ATTENTION_FIXTURE_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "cpu/attention.h"
#include "cpu/kv_order.h"
#include "support/random_matrix.h"

// What the tests of attention share: pools with NaN wherever nothing was written, sequences whose
// blocks lie anywhere in them, and queries that depend on sequence and position only.

namespace incipit::testing::attention {

using device::BlockId;
using device::KvFormat;
using device::SequenceRows;

struct Path {
  std::string name;
  base::CpuFeatures features = {};
};

/// The instruction paths that this machine can run.
inline std::vector<Path> paths() {
  const base::CpuFeatures have = base::cpu_features();
  std::vector<Path> paths = {{"scalar", {}}};
  if (have.avx2) paths.push_back({"avx2", {.avx2 = true}});
  if (have.avx512) paths.push_back({"avx512", {.avx2 = true, .avx512 = true}});
  if (have.avx512_bf16)
    paths.push_back({"bf16dot", {.avx2 = true, .avx512 = true, .avx512_bf16 = true}});
  return paths;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(engine_() % limit); }
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(high - low + 1);
  }
  /// About normal, mean 0, deviation 1: a sum of four uniform numbers.
  float value() {
    const std::uint64_t bits = engine_();
    double sum = -2.0;
    for (int i = 0; i < 4; ++i) {
      sum += static_cast<double>((bits >> (16 * i)) & 0xffff) / 65536.0;
    }
    return static_cast<float>(sum * 1.7320508);
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  std::mt19937_64 engine_;
};

/// A pool that hands out its blocks in random order. Each element (of int8: each scale) is NaN
/// until it is written.
class TestPool {
 public:
  TestPool(const device::KvShape& shape, std::size_t blocks, std::uint64_t seed)
      : layout_(shape),
        bytes_(blocks * layout_.block_bytes(), std::byte{0xff}),
        free_(blocks),
        random_(seed) {
    std::iota(free_.begin(), free_.end(), BlockId{0});
    std::shuffle(free_.begin(), free_.end(), random_.engine());
  }

  const device::KvShape& shape() const { return layout_.shape(); }
  device::KvPoolView view() {
    return {bytes_.data(), bytes_.size() / layout_.block_bytes(), layout_};
  }

  BlockId take() {
    const BlockId id = free_.back();
    free_.pop_back();
    return id;
  }
  void give_back(std::span<const BlockId> blocks) {
    free_.insert(free_.end(), blocks.begin(), blocks.end());
  }
  BlockId copy_of(BlockId from) {
    const BlockId to = take();
    std::memcpy(view().block(to), view().block(from), layout_.block_bytes());
    return to;
  }

  /// Random K and V of one token in all layers and heads.
  void write_token(BlockId block, std::size_t position) {
    for_each_row(block, [&](const Row& row) {
      if (scaled()) set_scale(row, position, 0.01f * static_cast<float>(random_.between(1, 4)));
      for (std::size_t dim = 0; dim < shape().head_dim; ++dim) {
        write(row, position, dim, scaled() ? integer() : random_.value());
      }
    });
  }
  /// The same value in all of a token's K and V.
  void fill_token(BlockId block, std::size_t position, float value) {
    for_each_row(block, [&](const Row& row) {
      if (scaled()) set_scale(row, position, value);
      for (std::size_t dim = 0; dim < shape().head_dim; ++dim) {
        write(row, position, dim, scaled() ? 1.0f : value);
      }
    });
  }
  void copy_token(BlockId from, BlockId to, std::size_t position) {
    const std::ptrdiff_t distance = view().block(from) - view().block(to);
    for_each_row(to, [&](const Row& row) {
      const Row source = {row.base + distance, row.key};
      if (scaled()) set_scale(row, position, scale(source, position));
      for (std::size_t dim = 0; dim < shape().head_dim; ++dim) {
        write(row, position, dim, read(source, position, dim));
      }
    });
  }
  double k(BlockId block, std::size_t layer, std::size_t head, std::size_t position,
           std::size_t dim) {
    return value(k_row(block, layer, head), position, dim);
  }
  double v(BlockId block, std::size_t layer, std::size_t head, std::size_t position,
           std::size_t dim) {
    return value(v_row(block, layer, head), position, dim);
  }
  /// One element; of int8 all of the token's in this head, by their scale.
  void set_k(BlockId block, std::size_t layer, std::size_t head, std::size_t position,
             std::size_t dim, float value) {
    set(k_row(block, layer, head), position, dim, value);
  }
  void set_v(BlockId block, std::size_t layer, std::size_t head, std::size_t position,
             std::size_t dim, float value) {
    set(v_row(block, layer, head), position, dim, value);
  }

 private:
  /// K or V of one head of a block.
  struct Row {
    std::byte* base;
    bool key;
  };

  template <class Body>
  void for_each_row(BlockId block, const Body& body) {
    for (std::size_t layer = 0; layer < shape().layers; ++layer) {
      for (std::size_t head = 0; head < shape().kv_heads; ++head) {
        body(k_row(block, layer, head));
        body(v_row(block, layer, head));
      }
    }
  }
  Row k_row(BlockId block, std::size_t layer, std::size_t head) {
    return {view().block(block) + layout_.k_offset(layer, head), true};
  }
  Row v_row(BlockId block, std::size_t layer, std::size_t head) {
    return {view().block(block) + layout_.v_offset(layer, head), false};
  }
  bool scaled() const { return shape().type == KvFormat::kInt8; }
  float integer() { return std::clamp(std::round(random_.value() * 50.0f), -127.0f, 127.0f); }

  std::byte* scale_at(const Row& row, std::size_t position) const {
    return row.base + layout_.scales_offset() + position * sizeof(float);
  }
  void set_scale(const Row& row, std::size_t position, float scale) const {
    std::memcpy(scale_at(row, position), &scale, sizeof(float));
  }
  float scale(const Row& row, std::size_t position) const {
    float scale;
    std::memcpy(&scale, scale_at(row, position), sizeof(float));
    return scale;
  }

  std::byte* element(const Row& row, std::size_t position, std::size_t dim) const {
    const std::size_t head_dim = shape().head_dim;
    const bool f32 = shape().type == KvFormat::kF32;
    const std::size_t k_index =
        f32 ? cpu::k_index_f32(position, dim) : cpu::k_index_pairs(position, dim);
    const std::size_t v_index = f32 ? cpu::v_index_f32(position, dim, head_dim)
                                    : cpu::v_index_pairs(position, dim, head_dim);
    return row.base + (row.key ? k_index : v_index) * device::value_bytes(shape().type);
  }
  // Of int8 the integer.
  void write(const Row& row, std::size_t position, std::size_t dim, float value) const {
    std::byte* const to = element(row, position, dim);
    if (shape().type == KvFormat::kF32) {
      std::memcpy(to, &value, 4);
    } else if (scaled()) {
      *to = static_cast<std::byte>(static_cast<std::int8_t>(value));
    } else {
      const std::uint16_t bits =
          shape().type == KvFormat::kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value);
      std::memcpy(to, &bits, 2);
    }
  }
  float read(const Row& row, std::size_t position, std::size_t dim) const {
    const std::byte* const from = element(row, position, dim);
    if (scaled()) return static_cast<float>(static_cast<std::int8_t>(*from));
    if (shape().type == KvFormat::kF32) {
      float value;
      std::memcpy(&value, from, 4);
      return value;
    }
    std::uint16_t bits;
    std::memcpy(&bits, from, 2);
    return shape().type == KvFormat::kF16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
  }
  double value(const Row& row, std::size_t position, std::size_t dim) const {
    const auto read_value = static_cast<double>(read(row, position, dim));
    return scaled() ? read_value * static_cast<double>(scale(row, position)) : read_value;
  }
  void set(const Row& row, std::size_t position, std::size_t dim, float value) const {
    if (scaled()) {
      set_scale(row, position, value);
    } else {
      write(row, position, dim, value);
    }
  }

  device::KvLayout layout_;
  std::vector<std::byte> bytes_;
  std::vector<BlockId> free_;
  Random random_;
};

struct TestSequence {
  std::vector<BlockId> blocks = {};
  std::uint32_t length = 0;
  std::uint64_t query_seed = 0;
};

/// A sequence that begins with the first `shared` tokens of `parent` (whole blocks are the same
/// ones, a partial one is copied) and goes on with tokens of its own.
inline TestSequence make_sequence(TestPool& pool, std::uint32_t length, std::uint64_t query_seed,
                                  const TestSequence* parent = nullptr, std::uint32_t shared = 0) {
  TestSequence sequence{{}, length, query_seed};
  for (std::uint32_t position = 0; position < length; ++position) {
    const std::uint32_t offset = position % 16;
    if (position < shared) {
      if (offset != 0) continue;
      const BlockId block = parent->blocks[position / 16];
      sequence.blocks.push_back(shared - position >= 16 ? block : pool.copy_of(block));
      continue;
    }
    if (offset == 0) sequence.blocks.push_back(pool.take());
    pool.write_token(sequence.blocks.back(), offset);
  }
  return sequence;
}

/// The same keys and values in other blocks.
inline TestSequence private_copy(TestPool& pool, const TestSequence& sequence) {
  TestSequence copy = sequence;
  for (BlockId& block : copy.blocks) block = pool.copy_of(block);
  return copy;
}

/// The query of one row: [heads * head_dim].
inline void make_query(const TestSequence& sequence, std::uint32_t position,
                       std::span<float> query) {
  Random random(sequence.query_seed * 1000003 + position);
  for (float& value : query) value = random.value();
}

/// One attention call over a batch.
struct Batch {
  struct Part {
    const TestSequence* sequence = nullptr;
    std::uint32_t first = 0, count = 0;
  };
  std::vector<Part> parts = {};

  Batch& add(const TestSequence& sequence, std::uint32_t first, std::uint32_t count) {
    parts.push_back({&sequence, first, count});
    return *this;
  }
  std::uint32_t rows() const {
    std::uint32_t sum = 0;
    for (const Part& part : parts) sum += part.count;
    return sum;
  }
};

struct Run {
  device::PlanOptions plan = {};
  unsigned threads = 1;
  bool windowed_plan = true;  // the plan leaves out what the window hides
};

/// Runs one batch on one path; [rows, heads * head_dim].
inline std::vector<float> run_attention(const Path& path, TestPool& pool,
                                        const device::AttentionParams& params, const Batch& batch,
                                        const Run& run, base::ThreadPool& threads,
                                        cpu::AttentionScratch& scratch) {
  const std::size_t width = params.heads * pool.shape().head_dim;
  std::vector<float> q(batch.rows() * width), out(batch.rows() * width, NAN);
  std::vector<SequenceRows> sequences;
  std::size_t row = 0;
  for (const Batch::Part& part : batch.parts) {
    sequences.push_back({part.sequence->blocks, part.first, part.count});
    for (std::uint32_t i = 0; i < part.count; ++i, ++row) {
      make_query(*part.sequence, part.first + i, std::span(q).subspan(row * width, width));
    }
  }
  const device::AttentionPlan plan =
      device::plan_attention(sequences, run.plan, run.windowed_plan ? params.window : 0);
  cpu::AttentionTask task;
  task.pool = pool.view();
  task.params = params;
  task.plan = &plan;
  task.q = {q.data(), batch.rows(), width, width};
  task.out = {out.data(), batch.rows(), width, width};
  cpu::attention(cpu::attention_kernel(path.features, pool.shape()), task, threads, scratch);
  return out;
}

inline std::vector<float> run_attention(const Path& path, TestPool& pool,
                                        const device::AttentionParams& params, const Batch& batch,
                                        const Run& run = {}) {
  base::ThreadPool threads(run.threads);
  cpu::AttentionScratch scratch;
  return run_attention(path, pool, params, batch, run, threads, scratch);
}

}  // namespace incipit::testing::attention

#endif  // INCIPIT_TESTS_CPU_ATTENTION_FIXTURE_H_
