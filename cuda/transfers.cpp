// SPDX-License-Identifier: Apache-2.0
#include "cuda/transfers.h"

#include <algorithm>
#include <cstring>

namespace incipit::cuda {

Transfers::Transfers(Runtime& runtime, StreamRef compute)
    : runtime_(runtime),
      compute_(compute),
      pinned_(runtime.allocate_pinned(kSmallSlots * kSmallBytes + 4 * kChunkBytes)) {
  std::byte* pinned = pinned_.data();
  for (Chunk& slot : small_) {
    slot = {pinned, runtime_.make_event()};
    pinned += kSmallBytes;
  }
  open(up_, pinned);
  open(down_, pinned + 2 * kChunkBytes);
}

void Transfers::open(Lane& lane, std::byte* pinned) {
  lane.stream = runtime_.make_stream();
  lane.before = runtime_.make_event();
  for (Chunk& chunk : lane.chunks) {
    chunk = {pinned, runtime_.make_event()};
    pinned += kChunkBytes;
  }
}

void Transfers::follow_compute(Lane& lane) {
  runtime_.record(lane.before, compute_);
  runtime_.wait(lane.stream, lane.before);
}

void Transfers::upload_small(base::Bytes from, std::byte* to) {
  const std::lock_guard lock(small_mutex_);
  const Chunk& slot = small_[next_small_];
  next_small_ = (next_small_ + 1) % kSmallSlots;
  runtime_.synchronize(slot.done);
  std::memcpy(slot.pinned, from.data(), from.size());
  runtime_.upload(compute_, slot.pinned, to, from.size());
  runtime_.record(slot.done, compute_);
}

void Transfers::upload(base::Bytes from, std::byte* to) {
  if (from.empty()) return;
  if (from.size() <= kSmallBytes) return upload_small(from, to);
  const std::lock_guard lock(up_.mutex);
  follow_compute(up_);
  for (std::size_t first = 0, i = 0; first < from.size(); first += kChunkBytes, ++i) {
    const Chunk& chunk = up_.chunks[i % 2];
    const std::size_t bytes = std::min(kChunkBytes, from.size() - first);
    runtime_.synchronize(chunk.done);
    std::memcpy(chunk.pinned, from.data() + first, bytes);
    runtime_.upload(up_.stream, chunk.pinned, to + first, bytes);
    runtime_.record(chunk.done, up_.stream);
  }
  runtime_.synchronize(up_.stream);
}

void Transfers::download(const std::byte* from, std::span<std::byte> to) {
  if (to.empty()) return;
  const std::lock_guard lock(down_.mutex);
  follow_compute(down_);
  const std::size_t chunks = (to.size() + kChunkBytes - 1) / kChunkBytes;
  const auto part = [&](std::size_t i) {
    return to.subspan(i * kChunkBytes, std::min(kChunkBytes, to.size() - i * kChunkBytes));
  };
  const auto start = [&](std::size_t i) {
    const Chunk& chunk = down_.chunks[i % 2];
    runtime_.download(down_.stream, from + i * kChunkBytes, chunk.pinned, part(i).size());
    runtime_.record(chunk.done, down_.stream);
  };
  start(0);
  for (std::size_t i = 0; i < chunks; ++i) {
    if (i + 1 < chunks) start(i + 1);
    const Chunk& chunk = down_.chunks[i % 2];
    runtime_.synchronize(chunk.done);
    std::memcpy(part(i).data(), chunk.pinned, part(i).size());
  }
}

}  // namespace incipit::cuda
