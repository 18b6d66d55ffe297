// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_HOST_ARRAY_H_
#define INCIPIT_CUDA_HOST_ARRAY_H_

#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>

#include "base/bytes.h"
#include "cuda/runtime.h"

namespace incipit::cuda {

/// What operations of one kind bring along from the host: ids, slots, a plan. All layers of a step
/// bring the same, so bytes that are there already are not copied again. One thread calls.
class HostArray {
 public:
  HostArray(Runtime& runtime, StreamRef stream);

  /// Where a piece begins within the copy.
  static constexpr std::size_t aligned(std::size_t bytes) noexcept {
    return (bytes + 63) / 64 * 64;
  }

  /// The pieces one behind the other, each aligned(), in memory of the device, for what comes next
  /// in the stream; until the fourth call from here.
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
  const StreamRef stream_;
  std::array<Version, kVersions> versions_ = {};
  std::size_t last_ = 0;
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_HOST_ARRAY_H_
