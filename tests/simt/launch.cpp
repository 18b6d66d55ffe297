// SPDX-License-Identifier: Apache-2.0
// The part of the scheduler that turns a launch into blocks.
#include <numeric>

#include "simt/sanitizers.h"
#include "simt/scheduler.h"

namespace incipit::simt {

void Scheduler::check_launch(Dim3 grid, Dim3 block, std::size_t shared_bytes) const {
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kMaxWarps * kWarpLanes) {
    throw Failure("launch: a block has 1 to 1024 threads, not " + std::to_string(threads));
  }
  if (threads % kWarpLanes != 0) {
    throw Failure("launch: the threads of a block must be whole warps, not " +
                  std::to_string(threads));
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 ||
      grid.z > 65535) {
    throw Failure("launch: a grid of " + std::to_string(grid.x) + " x " + std::to_string(grid.y) +
                  " x " + std::to_string(grid.z) + " blocks");
  }
  const std::size_t limit = shared_limit(machine_->options.architecture);
  if (shared_bytes > limit) {
    throw Failure("launch: " + std::to_string(shared_bytes) + " bytes of shared memory, of which " +
                  "there are " + std::to_string(limit));
  }
}

void Scheduler::make_lanes(unsigned count) {
  while (lanes_.size() < count) {
    const auto number = static_cast<unsigned>(lanes_.size());
    lanes_.push_back(std::make_unique<Lane>(&run_lane, number));
  }
}

void Scheduler::begin_lanes() {
  ready_ = {};
  meeting_ = {};
  for (unsigned warp = 0; warp < warps_; ++warp) ready_[warp] = kFullMask;
  alive_ = ready_;
  alive_count_ = threads_;
  at_barrier_ = 0;
  const Dim3 size = block_.block_size;
  for (unsigned i = 0; i < threads_; ++i) {
    Lane& lane = *lanes_[i];
    lane.thread = {i % size.x, i / size.x % size.y, i / (size.x * size.y)};
    lane.wait = Wait::kNothing;
    lane.copies.clear();
  }
}

/// After a failure: fibers stand anywhere in the kernel.
void Scheduler::forget_lanes() {
  for (const auto& lane : lanes_) {
    if (lane->wait != Wait::kExited || lane.get() == failed_) lane->context.restart();
    lane->wait = Wait::kExited;
  }
}

void Scheduler::run_block(Dim3 block, std::size_t shared_bytes) {
  block_.block = block;
  shared_.begin_block(shared_bytes, machine_->options.architecture >= 90);
  phase_barriers_.clear();
  for (Warpgroup& group : warpgroups_) group.clear();
  accesses_.begin_block(machine_->counters, machine_->options);
  begin_lanes();
  ++machine_->counters.blocks;
  machine_->counters.threads += threads_;
  release(&begin_key_);
  switch_to(next());
  if (failure_.empty()) failure_ = accesses_.end_block();
  if (failure_.empty()) failure_ = phase_barriers_.end_block();
  for (const Warpgroup& group : warpgroups_) {
    if (failure_.empty()) failure_ = group.end_block();
  }
  shared_.end_block();
}

void Scheduler::launch(Machine& machine, Dim3 grid, Dim3 block, std::size_t shared_bytes,
                       const std::function<void()>& body) {
  if (current_ != nullptr) fail({"a kernel launches a kernel"});
  machine_ = &machine;
  check_launch(grid, block, shared_bytes);
  threads_ = block.x * block.y * block.z;
  warps_ = threads_ / kWarpLanes;
  body_ = &body;
  block_ = {{}, block, grid, &machine.options};
  running_ = this;
  running_block = &block_;
  random_ = Random(machine.options.seed);
  failure_.clear();
  failed_ = nullptr;
  make_lanes(threads_);

  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  std::vector<std::uint64_t> order;
  if (machine.options.permute_blocks) {
    order.resize(blocks);
    std::iota(order.begin(), order.end(), 0);
    for (std::uint64_t i = blocks; i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
  }
  for (std::uint64_t i = 0; i < blocks && failure_.empty(); ++i) {
    const std::uint64_t b = order.empty() ? i : order[i];
    run_block({static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
               static_cast<unsigned>(b / grid.x / grid.y)},
              shared_bytes);
  }
  // Only now: different threads of different blocks are ordered by nothing.
  acquire(&end_key_);
  running_ = nullptr;
  running_block = nullptr;
  if (failure_.empty()) return;
  forget_lanes();
  throw Failure(failure_);
}

}  // namespace incipit::simt
