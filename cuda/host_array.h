// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_HOST_ARRAY_H_
#define INCIPIT_CUDA_HOST_ARRAY_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/bytes.h"
#include "cuda/runtime.h"
#include "cuda/step_queue.h"

namespace incipit::cuda {

/// What operations of one kind bring along from the host: ids, slots, a plan. All layers of a step
/// bring the same, so bytes that are there already are not copied again; and the steps of a text
/// bring about as much, so each finds its bytes where those of the last step were. One thread
/// calls.
class HostArray {
 public:
  HostArray(Runtime& runtime, StepQueue& queue);

  /// Where a piece begins within the copy. In steps of a quarter at most, so that the places of the
  /// others stay when a piece grows by little.
  static constexpr std::size_t aligned(std::size_t bytes) noexcept {
    const std::size_t unit = std::max<std::size_t>(64, std::bit_floor(bytes) / 4);
    return (bytes + unit - 1) / unit * unit;
  }

  /// A step begins.
  void begin() noexcept { used_ = 0; }
  /// The pieces one behind the other, each aligned(), in memory of the device, for launches of the
  /// queue until the fourth call from here with other bytes.
  const std::byte* bring(std::initializer_list<base::Bytes> pieces);

 private:
  static constexpr std::size_t kVersions = 4;

  struct Version {
    device::Buffer pinned = {};
    device::Buffer memory = {};
    EventRef copied = {};
    std::size_t bytes = 0;  // of the pinned memory that are in use
  };

  void make_room(std::size_t bytes);

  Runtime& runtime_;
  StepQueue& queue_;
  std::array<Version, kVersions> versions_ = {};
  std::size_t used_ = 0;  // of the versions, since begin()
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_HOST_ARRAY_H_
