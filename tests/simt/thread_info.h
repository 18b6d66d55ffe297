// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_THREAD_INFO_H_
#define INCIPIT_TESTS_SIMT_THREAD_INFO_H_

#include <cstdint>

#include "simt/types.h"

namespace incipit::simt {

constexpr unsigned kWarpLanes = 32;
constexpr std::uint32_t kFullMask = 0xffffffffu;
// Four warps, of which the first has a number divisible by four, multiply together on sm_90a.
constexpr unsigned kGroupWarps = 4;
constexpr unsigned kGroupLanes = kGroupWarps * kWarpLanes;

/// What a thread may ask about itself.
struct ThreadInfo {
  Dim3 thread = {};
  unsigned number = 0;  // in its block
  unsigned lane = 0;
  unsigned warp = 0;
};

/// And about its block.
struct BlockInfo {
  Dim3 block = {};
  Dim3 block_size = {};
  Dim3 grid = {};
  const Options* options = nullptr;
};

/// What the thread that is running belongs to. Null between launches.
extern thread_local constinit const ThreadInfo* running_thread;
extern thread_local constinit const BlockInfo* running_block;

struct AsyncCopy {
  void* to = nullptr;
  const void* from = nullptr;
  std::uint32_t bytes = 0;       // of `to`
  std::uint32_t from_bytes = 0;  // the rest becomes zero
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_THREAD_INFO_H_
