// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_TRANSFERS_H_
#define INCIPIT_CUDA_TRANSFERS_H_

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

#include "base/bytes.h"
#include "cuda/runtime.h"

// Bytes of the host to the device and back, by any thread at any time, through pinned memory.
//
// The stream of the computation is the clock. A copy sees what was queued there before the call
// (rules 1 and 2: a block is stored after the step that wrote it, and overwritten after the last
// step that read it), and what is queued there after the call has returned sees the copy (rule 3).
// What is under way there meanwhile goes on: that is what the copies' own streams are for.

namespace incipit::cuda {

class Transfers {
 public:
  /// Copies up to this go to the device in the computation's own stream, without waiting for it:
  /// what each step brings along. Larger ones, such as blocks of KV, take a stream of their own.
  static constexpr std::size_t kSmallBytes = std::size_t{64} << 10;
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

  Transfers(Runtime& runtime, StreamRef compute);

  /// Returns when `from` may change; larger ones when the bytes are there.
  void upload(base::Bytes from, std::byte* to);
  /// Returns when the bytes are there.
  void download(const std::byte* from, std::span<std::byte> to);

 private:
  static constexpr std::size_t kSmallSlots = 4;

  /// Pinned memory that a copy may need until its event.
  struct Chunk {
    std::byte* pinned = nullptr;
    EventRef done = {};
  };
  /// Two chunks: one is filled, or emptied, while the other is copied.
  struct Lane {
    std::mutex mutex = {};
    StreamRef stream = {};
    EventRef before = {};  // where the computation was when a copy was asked for
    std::array<Chunk, 2> chunks = {};
  };

  void open(Lane& lane, std::byte* pinned);
  void follow_compute(Lane& lane);
  void upload_small(base::Bytes from, std::byte* to);

  Runtime& runtime_;
  const StreamRef compute_;
  const device::Buffer pinned_;
  std::mutex small_mutex_;
  std::array<Chunk, kSmallSlots> small_ = {};
  std::size_t next_small_ = 0;
  Lane up_ = {};
  Lane down_ = {};
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_TRANSFERS_H_
