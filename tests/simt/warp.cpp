// SPDX-License-Identifier: Apache-2.0
// Barriers, votes, shuffles, and what a kernel asks the scheduler.
#include "simt/device.h"
#include "simt/sanitizers.h"
#include "simt/scheduler.h"

namespace incipit::simt {
namespace {

struct ShufflePart {
  std::uint64_t value;
  Shuffle kind;
  unsigned argument;
  std::uint64_t result;
};

/// The lane that a shuffle reads; out of range: the own one.
unsigned source_lane(const ShufflePart& part, unsigned lane) {
  switch (part.kind) {
    case Shuffle::kIndex:
      return part.argument % kWarpLanes;
    case Shuffle::kXor:
      return (lane ^ part.argument) < kWarpLanes ? lane ^ part.argument : lane;
    case Shuffle::kUp:
      return part.argument <= lane ? lane - part.argument : lane;
    case Shuffle::kDown:
      break;
  }
  return lane + part.argument < kWarpLanes ? lane + part.argument : lane;
}

void execute_shuffle(Meeting& meeting) {
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (!meeting.has(lane)) continue;
    auto& part = meeting.payload<ShufflePart>(lane);
    const unsigned source = source_lane(part, lane);
    if (!meeting.has(source)) {
      Scheduler::running().fail({"shuffle: lane ", lane, " reads lane ", source,
                                 ", which takes no part", meeting.last.site});
    }
    part.result = meeting.payload<ShufflePart>(source).value;
  }
}

struct Vote {
  bool predicate;
  std::uint32_t result;
};

void execute_ballot(Meeting& meeting) {
  std::uint32_t votes = 0;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (meeting.has(lane) && meeting.payload<Vote>(lane).predicate) votes |= 1u << lane;
  }
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (meeting.has(lane)) meeting.payload<Vote>(lane).result = votes;
  }
}

constexpr WarpOperation kSyncWarp = {"barrier of a warp", false, [](Meeting&) {}};
constexpr WarpOperation kShuffle = {"shuffle", false, execute_shuffle};
constexpr WarpOperation kBallot = {"ballot", false, execute_ballot};

}  // namespace

void launch(Machine& machine, Dim3 grid, Dim3 block, std::size_t shared_bytes,
            const std::function<void()>& body) {
  Scheduler::of_this_thread().launch(machine, grid, block, shared_bytes, body);
}

void fail(const char* message, Site site) { Scheduler::running().fail({message, site}); }

void sync_threads(Site site) {
  Scheduler& scheduler = Scheduler::running();
  void* const key = scheduler.barrier_key();
  release(key);
  scheduler.barrier(site);
  acquire(key);
}

void sync_warp(std::uint32_t mask, Site site) {
  Scheduler& scheduler = Scheduler::running();
  void* const key = scheduler.warp_key(mask);
  release(key);
  scheduler.meet(kSyncWarp, mask, nullptr, site);
  acquire(key);
}

std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, Shuffle kind, unsigned argument,
                      Site site) {
  ShufflePart part = {value, kind, argument, 0};
  Scheduler::running().meet(kShuffle, mask, &part, site);
  return part.result;
}

std::uint32_t ballot(std::uint32_t mask, bool predicate, Site site) {
  Vote vote = {predicate, 0};
  Scheduler::running().meet(kBallot, mask, &vote, site);
  return vote.result;
}

unsigned char* dynamic_shared() { return Scheduler::running().shared().dynamic(); }

void* static_shared(const void* key, std::size_t bytes) {
  return Scheduler::running().shared().of_declaration(key, bytes);
}

void note_access(Access access, const void* address, unsigned bytes, Site site) {
  Scheduler& scheduler = Scheduler::running();
  const Lane& me = scheduler.me();
  const bool shared = access == Access::kSharedLoad || access == Access::kSharedStore;
  if (shared != scheduler.shared().contains(address, bytes)) {
    const char* const text = shared ? "an access of shared memory goes elsewhere"
                                    : "an access of global memory goes to shared memory";
    scheduler.fail({text, site});
  }
  if (reinterpret_cast<std::uintptr_t>(address) % bytes != 0) {
    scheduler.fail({"misaligned access of ", bytes, " bytes", site});
  }
  if (access == Access::kSharedStore) scheduler.shared().note_store(address, bytes, me.number);
  scheduler.accesses().note(me.warp, me.lane, access, address, bytes, site);
}

void note_atomic() {
  Scheduler& scheduler = Scheduler::running();
  ++scheduler.machine().counters.atomics;
  scheduler.perhaps_switch();
}

}  // namespace incipit::simt
