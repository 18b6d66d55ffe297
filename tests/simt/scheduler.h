// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_SCHEDULER_H_
#define INCIPIT_TESTS_SIMT_SCHEDULER_H_

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "simt/access_log.h"
#include "simt/lane.h"
#include "simt/phase_barriers.h"
#include "simt/shared_memory.h"
#include "simt/warpgroup.h"

namespace incipit::simt {

/// The lanes of one warp that meet in an operation.
struct Meeting {
  const std::unique_ptr<Lane>* lanes;  // [32] of the warp
  std::uint32_t mask;                  // who takes part
  Lane& last;                          // who came last and now acts for all
  Machine& machine;

  template <class Payload>
  Payload& payload(unsigned lane) const {
    return *static_cast<Payload*>(lanes[lane]->payload);
  }
  bool has(unsigned lane) const { return (mask >> lane & 1u) != 0; }
};

/// An operation for which all lanes of a mask must be there; the last one executes it for all.
struct WarpOperation {
  const char* name;
  bool one_site;  // all lanes must come from one place of the source (ldmatrix, mma)
  void (*execute)(Meeting& meeting);
};

/// A generator of numbers for schedules: xorshift64.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1)
      : state_(seed * 0x9E3779B97F4A7C15ull + 88172645463325252ull) {}
  std::uint64_t below(std::uint64_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % bound;
  }

 private:
  std::uint64_t state_;
};

/// A piece of a message. Without memory of its own: what lies on the stack of a thread that fails
/// is never destroyed.
struct Part {
  // NOLINTBEGIN(google-explicit-constructor)
  Part(std::string_view text_in) : text(text_in) {}
  Part(const char* text_in) : text(text_in) {}
  Part(const std::string& text_in) : text(text_in) {}
  Part(unsigned number_in) : number(number_in) {}
  Part(Site site) : text(site.file), number(static_cast<unsigned>(site.line)), is_site(true) {}
  // NOLINTEND(google-explicit-constructor)
  void append_to(std::string& message) const;

  std::string_view text = {};
  unsigned number = 0;
  bool is_site = false;
};

/// Runs the threads of one block at a time, each on a fiber. One per host thread; the fibers are
/// kept between launches.
class Scheduler {
 public:
  static Scheduler& of_this_thread();
  /// The same from within a launch.
  static Scheduler& running() { return *running_; }
  Scheduler() = default;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Runs all blocks. Throws Failure.
  void launch(Machine& machine, Dim3 grid, Dim3 block, std::size_t shared_bytes,
              const std::function<void()>& body);

  // For operations of the thread that runs:
  Lane& me() { return *current_; }
  Machine& machine() { return *machine_; }
  SharedMemory& shared() { return shared_; }
  AccessLog& accesses() { return accesses_; }
  PhaseBarriers& phase_barriers() { return phase_barriers_; }
  Warpgroup& warpgroup() { return warpgroups_[current_->warp / kGroupWarps]; }
  /// The lanes of the current one's warpgroup, all of which the block must have.
  const std::unique_ptr<Lane>* warpgroup_lanes() const {
    return &lanes_[current_->warp / kGroupWarps * kGroupLanes];
  }
  /// Ends the launch with a Failure; does not return to the kernel.
  [[noreturn]] void fail(std::initializer_list<Part> message);
  void meet(const WarpOperation& operation, std::uint32_t mask, void* payload, Site site);
  void barrier(Site site);
  /// Lets others go on until one of them calls wake(); names what is awaited, in case nobody does.
  void sleep(const char* event, unsigned number, Site site);
  void wake(Lane& lane) { set_ready(lane); }
  /// Somebody else may go on first, where the schedule is random.
  void perhaps_switch();
  /// Keys for `release` and `acquire`, two that alternate: who leaves the next barrier early must
  /// not vouch for those that still leave this one.
  void* barrier_key() { return &barrier_keys_[barriers_ % 2]; }
  void* warp_key(std::uint32_t mask);

 private:
  void check_launch(Dim3 grid, Dim3 block, std::size_t shared_bytes) const;
  void make_lanes(unsigned count);
  void run_block(Dim3 block, std::size_t shared_bytes);
  void begin_lanes();
  void forget_lanes();
  static void run_lane(void* lane);
  void run_body();
  void exit_lane(Lane& lane);
  void release_barrier(Lane& last);
  void wait_now();
  void switch_to(Lane* lane);
  Lane* next();
  Lane* next_random();
  void set_ready(Lane& lane);
  void set_waiting(Lane& lane, Wait wait);
  void describe_deadlock();
  void describe(std::initializer_list<Part> message);

  static constexpr unsigned kMaxWarps = 32;
  static thread_local constinit Scheduler* running_;

  std::vector<std::unique_ptr<Lane>> lanes_;
  Context host_;
  Lane* current_ = nullptr;  // null: the host
  Machine* machine_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  BlockInfo block_ = {};
  unsigned threads_ = 0, warps_ = 0;
  unsigned alive_count_ = 0, at_barrier_ = 0;
  // Bit i: lane i of the warp can go on, has not exited, waits in a warp operation.
  std::array<std::uint32_t, kMaxWarps> ready_ = {}, alive_ = {}, meeting_ = {};
  std::array<std::array<std::uint32_t, kWarpLanes>, kMaxWarps> meetings_ = {};
  std::uint64_t barriers_ = 0;
  Random random_;
  SharedMemory shared_;
  AccessLog accesses_;
  PhaseBarriers phase_barriers_;
  std::array<Warpgroup, kMaxWarps / kGroupWarps> warpgroups_;
  std::string failure_, details_;
  const Lane* failed_ = nullptr;
  // Only their addresses matter.
  std::array<char, 2> barrier_keys_ = {};
  std::array<char, 2 * kMaxWarps* kWarpLanes> warp_keys_ = {};
  char begin_key_ = 0, end_key_ = 0;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_SCHEDULER_H_
