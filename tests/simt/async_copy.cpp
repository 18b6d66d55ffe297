// SPDX-License-Identifier: Apache-2.0
// The queues behind cp.async, commit_group and wait_group.
#include "simt/device.h"
#include "simt/sanitizers.h"
#include "simt/scheduler.h"

namespace incipit::simt {

void check_async_copy(const void* to, const void* from, unsigned bytes, unsigned from_bytes,
                      Site site) {
  Scheduler& scheduler = Scheduler::running();
  if (scheduler.machine().options.architecture < 80) {
    scheduler.fail({"asynchronous copies need sm_80", site});
  }
  if (bytes != 4 && bytes != 8 && bytes != 16) {
    scheduler.fail({"asynchronous copy of ", bytes, " bytes", site});
  }
  if (from_bytes > bytes) scheduler.fail({"asynchronous copy reads more than it writes", site});
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0) {
    scheduler.fail({"asynchronous copy to a misaligned address", site});
  }
  if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) {
    scheduler.fail({"asynchronous copy from a misaligned address", site});
  }
  if (!scheduler.shared().contains(to, bytes)) {
    scheduler.fail({"asynchronous copy to outside of shared memory", site});
  }
  Counters& counters = scheduler.machine().counters;
  ++counters.async_copies;
  counters.async_copy_bytes += from_bytes;
}

void queue_async_copy(const AsyncCopy& copy) {
  const OverlookRaces overlook;
  Scheduler::running().me().copies.copies.push_back(copy);
}

void commit_async_copies() {
  const OverlookRaces overlook;
  AsyncCopies& queue = Scheduler::running().me().copies;
  queue.group_ends.push_back(queue.copies.size());
}

bool next_async_copy(unsigned pending, AsyncCopy& copy) {
  AsyncCopies& queue = Scheduler::running().me().copies;
  for (;;) {
    if (queue.group_ends.size() - queue.groups_delivered <= pending) return false;
    if (queue.delivered < queue.group_ends[queue.groups_delivered]) break;
    ++queue.groups_delivered;
  }
  copy = queue.copies[queue.delivered++];
  if (queue.delivered == queue.copies.size() &&
      queue.groups_delivered + 1 == queue.group_ends.size()) {
    queue.clear();
  }
  return true;
}

}  // namespace incipit::simt
