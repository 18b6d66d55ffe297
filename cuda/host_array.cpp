// SPDX-License-Identifier: Apache-2.0
#include "cuda/host_array.h"

#include <algorithm>
#include <cstring>

namespace incipit::cuda {
namespace {

constexpr std::size_t kLeastBytes = 4096;

bool holds(const std::byte* pinned, std::initializer_list<base::Bytes> pieces) {
  for (const base::Bytes& piece : pieces) {
    if (!piece.empty() && std::memcmp(pinned, piece.data(), piece.size()) != 0) return false;
    pinned += HostArray::aligned(piece.size());
  }
  return true;
}

}  // namespace

HostArray::HostArray(Runtime& runtime, StreamRef stream) : runtime_(runtime), stream_(stream) {
  for (Version& version : versions_) version.copied = runtime.make_event();
  make_room(kLeastBytes);
}

/// For all versions at once, so that the size has to be met only once. Doubles at least.
void HostArray::make_room(std::size_t bytes) {
  bytes = std::max(bytes, 2 * versions_[0].memory.bytes());
  for (Version& version : versions_) {
    version.bytes = 0;
    version.memory = {};
    version.pinned = {};
    version.pinned = runtime_.allocate_pinned(bytes);
    version.memory = runtime_.allocate(bytes);  // the last: where it is large enough, both are
  }
}

const std::byte* HostArray::bring(std::initializer_list<base::Bytes> pieces) {
  std::size_t bytes = 0;
  for (const base::Bytes& piece : pieces) bytes += aligned(piece.size());
  const Version& last = versions_[last_];
  if (bytes == last.bytes && holds(last.pinned.data(), pieces)) return last.memory.data();

  last_ = (last_ + 1) % kVersions;
  Version& version = versions_[last_];
  version.bytes = 0;  // should something below throw
  runtime_.synchronize(version.copied);
  if (bytes > version.memory.bytes()) make_room(bytes);
  std::byte* to = version.pinned.data();
  for (const base::Bytes& piece : pieces) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += aligned(piece.size());
  }
  if (bytes > 0) runtime_.upload(stream_, version.pinned.data(), version.memory.data(), bytes);
  runtime_.record(version.copied, stream_);
  version.bytes = bytes;
  return version.memory.data();
}

}  // namespace incipit::cuda
