// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CPU_MEMORY_H_
#define INCIPIT_CPU_MEMORY_H_

#include <cstddef>
#include <memory>

#include "device/device.h"

namespace incipit::cpu {

/// Zeroed pages of the host, taken as they are touched; large ones ask for huge pages.
/// Throws Error{kOutOfMemory}.
device::Buffer allocate_pages(std::size_t bytes);

/// Memory for weights, laid out in the order of the calls: what is read next lies next, and many
/// matrices share huge pages. A chunk is freed when its last piece goes.
class WeightArena {
 public:
  struct Piece {
    std::byte* data = nullptr;  // aligned to 64 bytes, zeroed
    std::shared_ptr<const device::Buffer> chunk = nullptr;
  };

  /// Throws Error{kOutOfMemory}.
  Piece take(std::size_t bytes);

 private:
  std::shared_ptr<const device::Buffer> chunk_;
  std::size_t used_ = 0;  // of chunk_
};

}  // namespace incipit::cpu

#endif  // INCIPIT_CPU_MEMORY_H_
