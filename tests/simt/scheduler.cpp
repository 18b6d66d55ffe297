// SPDX-License-Identifier: Apache-2.0
#include "simt/scheduler.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "simt/sanitizers.h"

namespace incipit::simt {

thread_local constinit const ThreadInfo* running_thread = nullptr;
thread_local constinit const BlockInfo* running_block = nullptr;

thread_local constinit Scheduler* Scheduler::running_ = nullptr;

void Part::append_to(std::string& message) const {
  if (is_site) message += " at ";
  message += text;
  if (is_site) message += ":";
  if (is_site || text.data() == nullptr) message += std::to_string(number);
}

Scheduler& Scheduler::of_this_thread() {
  thread_local Scheduler scheduler;
  return scheduler;
}

void Scheduler::fail(std::initializer_list<Part> message) {
  describe(message);
  if (current_ == nullptr) throw Failure(failure_);
  failed_ = current_;
  // An exception must not cross to another stack: the host throws it there.
  switch_to(nullptr);
  std::abort();  // nobody goes on with a launch that failed
}

void Scheduler::describe(std::initializer_list<Part> message) {
  const OverlookRaces overlook;
  failure_.clear();
  for (const Part& part : message) part.append_to(failure_);
  failure_ += "  [block (" + std::to_string(block_.block.x) + "," + std::to_string(block_.block.y) +
              "," + std::to_string(block_.block.z) + ")";
  if (current_ != nullptr) failure_ += " thread " + std::to_string(current_->number);
  failure_ += "]";
}

/// Leaves to a lane, or to the host; returns when the caller is up again.
void Scheduler::switch_to(Lane* lane) {
  Lane* const me = current_;
  if (lane == me) return;
  current_ = lane;
  running_thread = lane;
  ++machine_->counters.switches;
  Context::switch_to(me == nullptr ? host_ : me->context, lane == nullptr ? host_ : lane->context);
}

Lane* Scheduler::next() {
  const Schedule schedule = machine_->options.schedule;
  if (schedule == Schedule::kRandom) return next_random();
  const bool forward = schedule == Schedule::kForward;
  const unsigned start = current_ != nullptr ? current_->warp : forward ? 0 : warps_ - 1;
  for (unsigned i = 0; i < warps_; ++i) {
    const unsigned warp = (forward ? start + i : start + warps_ - i) % warps_;
    const std::uint32_t ready = ready_[warp];
    if (ready == 0) continue;
    const int lane = forward ? std::countr_zero(ready) : 31 - std::countl_zero(ready);
    return lanes_[warp * kWarpLanes + static_cast<unsigned>(lane)].get();
  }
  return nullptr;
}

Lane* Scheduler::next_random() {
  const auto start = static_cast<unsigned>(random_.below(warps_));
  for (unsigned i = 0; i < warps_; ++i) {
    const unsigned warp = (start + i) % warps_;
    std::uint32_t ready = ready_[warp];
    if (ready == 0) continue;
    for (auto skip = random_.below(static_cast<unsigned>(std::popcount(ready))); skip > 0; --skip) {
      ready &= ready - 1;
    }
    return lanes_[warp * kWarpLanes + static_cast<unsigned>(std::countr_zero(ready))].get();
  }
  return nullptr;
}

void Scheduler::perhaps_switch() {
  if (machine_->options.schedule == Schedule::kRandom) switch_to(next());
}

/// The current lane cannot go on.
void Scheduler::wait_now() {
  Lane* const other = next();
  if (other == nullptr) {
    describe_deadlock();
    fail({details_});
  }
  switch_to(other);
}

void Scheduler::describe_deadlock() {
  const OverlookRaces overlook;
  std::map<std::string, std::pair<unsigned, unsigned>> places;  // how many, and the first
  for (unsigned i = 0; i < threads_; ++i) {
    const Lane& lane = *lanes_[i];
    std::string place = "exited";
    if (lane.wait == Wait::kNothing) place = "running";
    if (lane.wait == Wait::kBarrier) place = "the barrier of the block";
    if (lane.wait == Wait::kWarp) {
      char mask[16];
      std::snprintf(mask, sizeof mask, "%08x", lane.mask);
      place = std::string(lane.operation->name) + " of mask " + mask;
    }
    if (lane.wait == Wait::kEvent) place = lane.event + std::to_string(lane.event_number);
    if (lane.wait != Wait::kNothing && lane.wait != Wait::kExited) {
      Part(lane.site).append_to(place);
    }
    auto& [count, first] = places[place];
    if (count++ == 0) first = i;
  }
  details_ = "deadlock:";
  for (const auto& [place, who] : places) {
    details_ += "\n  " + std::to_string(who.first) + " threads, the first is " +
                std::to_string(who.second) + ": " + place;
  }
}

void Scheduler::set_ready(Lane& lane) {
  lane.wait = Wait::kNothing;
  ready_[lane.warp] |= 1u << lane.lane;
  meeting_[lane.warp] &= ~(1u << lane.lane);
}

void Scheduler::set_waiting(Lane& lane, Wait wait) {
  lane.wait = wait;
  ready_[lane.warp] &= ~(1u << lane.lane);
  if (wait == Wait::kWarp) meeting_[lane.warp] |= 1u << lane.lane;
}

void Scheduler::meet(const WarpOperation& operation, std::uint32_t mask, void* payload, Site site) {
  Lane& me = *current_;
  if ((mask >> me.lane & 1u) == 0) {
    fail({operation.name, ": the calling lane is not in the mask", site});
  }
  if ((mask & ~alive_[me.warp]) != 0) {
    fail({operation.name, ": a lane of the mask has exited", site});
  }
  me.operation = &operation;
  me.mask = mask;
  me.payload = payload;
  me.site = site;
  set_waiting(me, Wait::kWarp);
  const std::unique_ptr<Lane>* const warp = &lanes_[me.warp * kWarpLanes];
  bool complete = (meeting_[me.warp] & mask) == mask;
  for (std::uint32_t rest = complete ? mask : 0; rest != 0; rest &= rest - 1) {
    const Lane& other = *warp[std::countr_zero(rest)];
    if (other.operation != &operation || other.mask != mask) {
      complete = false;
      break;
    }
    if (operation.one_site && !(other.site == site)) {
      fail({operation.name, ": the lanes of a warp are at different places,", site, " and",
            other.site});
    }
  }
  if (!complete) {
    wait_now();
    return;
  }
  ++machine_->counters.warp_operations;
  ++meetings_[me.warp][static_cast<unsigned>(std::countr_zero(mask))];
  Meeting meeting{warp, mask, me, *machine_};
  operation.execute(meeting);
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    set_ready(*warp[std::countr_zero(rest)]);
  }
  perhaps_switch();
}

void Scheduler::sleep(const char* event, unsigned number, Site site) {
  Lane& me = *current_;
  me.event = event;
  me.event_number = number;
  me.site = site;
  set_waiting(me, Wait::kEvent);
  wait_now();
}

void* Scheduler::warp_key(std::uint32_t mask) {
  const unsigned warp = current_->warp;
  const auto first = static_cast<unsigned>(std::countr_zero(mask | 0x80000000u));
  return &warp_keys_[(warp * kWarpLanes + first) * 2 + meetings_[warp][first] % 2];
}

void Scheduler::barrier(Site site) {
  Lane& me = *current_;
  if (alive_count_ != threads_) fail({"barrier of the block after some threads exited", site});
  me.site = site;
  set_waiting(me, Wait::kBarrier);
  if (++at_barrier_ == alive_count_) {
    release_barrier(me);
    perhaps_switch();
  } else {
    wait_now();
  }
}

void Scheduler::release_barrier(Lane& last) {
  at_barrier_ = 0;
  ++barriers_;
  ++machine_->counters.barriers;
  accesses_.pass_barrier();
  for (unsigned i = 0; i < threads_; ++i) {
    Lane& lane = *lanes_[i];
    if (!(lane.site == last.site)) {
      fail({"the threads of a block wait at different barriers,", last.site, " and", lane.site});
    }
    set_ready(lane);
  }
}

void Scheduler::exit_lane(Lane& lane) {
  if (lane.copies.delivered != lane.copies.copies.size()) {
    fail({"a thread exits with asynchronous copies that it did not wait for"});
  }
  lane.wait = Wait::kExited;
  ready_[lane.warp] &= ~(1u << lane.lane);
  alive_[lane.warp] &= ~(1u << lane.lane);
  --alive_count_;
  if (at_barrier_ > 0) {
    describe_deadlock();
    fail({"a thread exits while others wait at the barrier of the block; ", details_});
  }
}

void Scheduler::run_body() {
  try {
    (*body_)();
    return;
  } catch (const std::exception& error) {
    details_ = error.what();
  } catch (...) {
    details_ = "an exception";
  }
  fail({"the kernel threw ", details_});  // not in the handler, which belongs to this stack
}

/// What a fiber does for ever: the body once per block.
void Scheduler::run_lane(void* lane_pointer) {
  Lane& lane = *static_cast<Lane*>(lane_pointer);
  for (;;) {
    Scheduler& scheduler = running();
    acquire(&scheduler.begin_key_);
    scheduler.run_body();
    release(&scheduler.end_key_);
    scheduler.exit_lane(lane);
    Lane* const other = scheduler.next();
    if (other == nullptr && scheduler.alive_count_ > 0) {
      scheduler.describe_deadlock();
      scheduler.fail({scheduler.details_});
    }
    scheduler.switch_to(other);
  }
}

}  // namespace incipit::simt
