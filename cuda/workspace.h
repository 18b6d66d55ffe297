// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_WORKSPACE_H_
#define INCIPIT_CUDA_WORKSPACE_H_

#include <algorithm>
#include <cstddef>

#include "cuda/runtime.h"
#include "cuda/step_queue.h"

namespace incipit::cuda {

/// Pieces of one piece of memory, each aligned for every kernel.
class Pieces {
 public:
  std::size_t take(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + 255) / 256 * 256;
    return offset;
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// Memory of one operation at a time; they run one after the other.
class Workspace {
 public:
  Workspace(Runtime& runtime, StepQueue& queue) : runtime_(runtime), queue_(queue) {}

  /// Of any content. What was taken before is over.
  std::byte* take(std::size_t bytes) {
    if (bytes > memory_.bytes()) {
      const std::size_t grown = std::max(bytes, 2 * memory_.bytes());
      queue_.flush();  // what has yet to start may use what is freed
      memory_ = {};
      memory_ = runtime_.allocate(grown);
    }
    return memory_.data();
  }

 private:
  Runtime& runtime_;
  StepQueue& queue_;
  device::Buffer memory_ = {};
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_WORKSPACE_H_
