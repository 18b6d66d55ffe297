// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_LANE_H_
#define INCIPIT_TESTS_SIMT_LANE_H_

#include <cstdint>
#include <vector>

#include "simt/context.h"
#include "simt/thread_info.h"

namespace incipit::simt {

enum class Wait : std::uint8_t { kNothing, kWarp, kBarrier, kEvent, kExited };

/// The copies of a thread that it has not waited for, in groups as it committed them.
struct AsyncCopies {
  std::vector<AsyncCopy> copies = {};
  std::vector<std::size_t> group_ends = {};  // indices into copies
  std::size_t delivered = 0;                 // copies
  std::size_t groups_delivered = 0;

  void clear() {
    copies.clear();
    group_ends.clear();
    delivered = groups_delivered = 0;
  }
};

struct WarpOperation;

/// A thread of the block that runs: its fiber and what it waits for.
struct Lane : ThreadInfo {
  Lane(void (*entry)(void*), unsigned number_in) : context(entry, this, number_in) {
    number = number_in;
    lane = number % kWarpLanes;
    warp = number / kWarpLanes;
  }

  Context context;
  Wait wait = Wait::kExited;
  Site site = {};                            // where it waits
  const WarpOperation* operation = nullptr;  // kWarp: in what,
  std::uint32_t mask = 0;                    // with whom,
  void* payload = nullptr;                   // and its part in it
  const char* event = nullptr;               // kEvent: for what,
  unsigned event_number = 0;                 // of which number
  AsyncCopies copies = {};
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_LANE_H_
