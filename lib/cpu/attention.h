// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_ATTENTION_H_
#define INCIPIT_CPU_ATTENTION_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "cpu/attention_kernel.h"
#include "cpu/attention_order.h"
#include "device/attention_plan.h"
#include "device/device.h"

namespace incipit::cpu {

/// The kernel for a KV shape on a path: `allowed` is what of the machine's features the path uses.
const AttentionKernel& attention_kernel(const base::CpuFeatures& allowed,
                                        const device::KvShape& shape) noexcept;

/// The part of the numerics id that names the arithmetic of all kernels of a path.
std::string attention_numerics(const base::CpuFeatures& allowed);

/// How to cut attention for so many threads.
device::PlanOptions attention_plan_options(unsigned threads) noexcept;

struct AttentionTask {
  device::KvPoolView pool = {};
  device::AttentionParams params = {};
  const device::AttentionPlan* plan = nullptr;
  tensor::ConstMatrix q = {};  // [batch rows, heads * head_dim]
  tensor::Matrix out = {};     // likewise
};

/// Memory that calls of attention() reuse. Grows with head_dim, members of the pool and the plan's
/// partial states.
class AttentionScratch {
 public:
  struct alignas(64) Line {
    float values[16];
  };
  static constexpr std::uint32_t kPassRows = 256;

  /// A query row of a pass: one head of one row of the batch.
  struct QueryRow {
    std::uint32_t batch_row, head;
    std::uint32_t key_begin, key_end;  // the positions that it sees
  };
  /// What one thread works in: a pass of at most kPassRows query rows.
  struct Worker {
    TileBuffers buffers;
    QueryRow query_rows[kPassRows];
    float segment_max[kMaxTileRows], segment_sum[kMaxTileRows];
    std::vector<Line> segment_acc;  // [kMaxTileRows, head_dim]
    std::vector<Line> queries;      // [kPassRows, head_dim], packed tile by tile
    std::vector<float> max, sum;    // [kPassRows] states folded so far
    std::vector<Line> acc;          // [kPassRows, head_dim]
    std::vector<Line> wide;         // K and V of a segment as its Widening has them
  };

  void prepare(unsigned members, const AttentionKernel& kernel, const AttentionTask& task);

  Worker& worker(unsigned member) noexcept { return *workers_[member]; }
  const AttentionOrder& order() const noexcept { return order_; }
  /// The partial states number `state` of the heads from `head` on.
  AttentionStates partial(std::size_t state, std::size_t head) noexcept;
  /// Items that still have to leave their states of a split row, per KV head.
  std::atomic<std::uint32_t>& pending(std::size_t split_row, std::size_t kv_head) noexcept {
    return pending_[kv_head * split_rows_ + split_row];
  }

 private:
  std::size_t head_dim_ = 0, group_ = 0, states_ = 0, split_rows_ = 0;
  std::vector<std::unique_ptr<Worker>> workers_;
  AttentionOrder order_;
  // KV heads come first: units of different heads run side by side, and would fight for the lines
  // where their states meet.
  std::vector<float> partial_max_, partial_sum_, partial_acc_;  // [kv_heads, states, group(, dim)]
  std::vector<std::atomic<std::uint32_t>> pending_;             // [kv_heads, split rows]
};

/// Softmax attention as Device::attention has it. A row's result depends on that row's query and
/// keys only. Throws Error{kInternal} where the views do not fit together.
void attention(const AttentionKernel& kernel, const AttentionTask& task, base::ThreadPool& threads,
               AttentionScratch& scratch);

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_ATTENTION_H_
