// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "cuda/prim/atomic.cuh"
#include "cuda/prim/warp.cuh"
#include "simt/kernel.h"

using namespace incipit;
using namespace incipit::cuda::prim;
using namespace incipit::testing;
using simt::Schedule;

namespace {

/// In which order the threads of a block come by.
std::vector<unsigned> order_of(const simt::Options& options, unsigned threads) {
  std::vector<unsigned> order;
  order.reserve(4 * threads);
  run_kernel(
      threads,
      [&] {
        order.push_back(thread_x());
        sync_threads();
        order.push_back(thread_x());
      },
      options);
  return order;
}

}  // namespace

TEST_CASE("threads and blocks know who they are") {
  std::set<std::vector<unsigned>> seen;
  simt::Machine machine;
  simt::launch(machine, {3, 2, 2}, {4, 8, 2}, 0, [&] {
    const simt::ThreadInfo& me = *simt::running_thread;
    CHECK(me.number == me.thread.x + 4 * me.thread.y + 32 * me.thread.z);
    CHECK(me.warp == me.number / 32);
    CHECK(me.lane == me.number % 32);
    CHECK(blocks_x() == 3);
    CHECK(blocks_y() == 2);
    seen.insert({block_x(), block_y(), block_z(), me.number});
  });
  CHECK(seen.size() == 3 * 2 * 2 * 64);
  CHECK(machine.counters.blocks == 12);
  CHECK(machine.counters.threads == 12 * 64);
}

TEST_CASE("schedules go forward, backward and anyhow") {
  std::vector<unsigned> up(128), down(128);
  for (unsigned i = 0; i < 128; ++i) {
    up[i] = i % 64;
    down[i] = 63 - i % 64;
  }
  simt::Options options;
  CHECK(order_of(options, 64)[0] == 0);
  options.schedule = Schedule::kReverse;
  CHECK(order_of(options, 64)[0] == 63);
  options.schedule = Schedule::kRandom;
  const auto first = order_of(options, 64);
  CHECK(order_of(options, 64) == first);  // of one seed
  options.seed = 2;
  CHECK(order_of(options, 64) != first);
  for (const auto schedule : {Schedule::kForward, Schedule::kReverse, Schedule::kRandom}) {
    options.schedule = schedule;
    auto order = order_of(options, 64);
    // Nobody passes the barrier before all are there.
    std::sort(order.begin(), order.begin() + 64);
    std::sort(order.begin() + 64, order.end());
    CHECK(order == up);
  }
}

TEST_CASE("blocks run in the order that the seed says") {
  const auto blocks = [](const simt::Options& options) {
    std::vector<unsigned> order;
    run_kernel(32,
               [&] {
                 if (thread_x() == 0) order.push_back(block_x());
               },
               options, 0, {40, 1, 1});
    return order;
  };
  simt::Options options;
  std::vector<unsigned> all(40);
  for (unsigned i = 0; i < 40; ++i) all[i] = i;
  CHECK(blocks(options) == all);
  options.permute_blocks = true;
  auto permuted = blocks(options);
  CHECK(permuted != all);
  CHECK(blocks(options) == permuted);
  options.seed = 9;
  CHECK(blocks(options) != permuted);
  std::sort(permuted.begin(), permuted.end());
  CHECK(permuted == all);
}

TEST_CASE("atomics of all threads and blocks add up") {
  std::uint32_t sum = 0, most = 0, least = 1000;
  Wide wide = 0;
  simt::Options options;
  options.schedule = Schedule::kRandom;
  const auto counters = run_kernel(96,
                                   [&] {
                                     atomic_add(&sum, thread_x());
                                     atomic_add(&wide, Wide{1} << 40);
                                     atomic_max(&most, thread_x());
                                     atomic_min(&least, thread_x() + 7);
                                   },
                                   options, 0, {3, 1, 1});
  CHECK(sum == 3 * 95 * 96 / 2);
  CHECK(wide == Wide{3 * 96} << 40);
  CHECK(most == 95);
  CHECK(least == 7);
  CHECK(counters.atomics == 4 * 3 * 96);
}

TEST_CASE("a barrier that not all threads reach is a failure") {
  const std::string branch = failure_of(64, [] {
    if (warp() == 0) sync_threads();
  });
  CHECK_THAT(branch, says("exits while others wait at the barrier"));
  CHECK_THAT(branch, says("scheduler_test.cpp:"));
  const std::string early = failure_of(64, [] {
    if (thread_x() > 40) return;
    sync_threads();
  });
  CHECK_THAT(early, says("exit"));
  simt::Options reverse;
  reverse.schedule = Schedule::kReverse;
  CHECK_THAT(failure_of(
                 64,
                 [] {
                   if (thread_x() > 40) return;
                   sync_threads();
                 },
                 reverse),
             says("after some threads exited"));
  const auto apart = [] {
    if (warp() == 0) {
      sync_threads();
    } else {
      sync_threads();
    }
  };
  CHECK_THAT(failure_of(64, apart), says("different barriers"));
  const auto files_apart = [] { simt::sync_threads({warp() == 0 ? "one.cuh" : "other.cuh", 7}); };
  CHECK_THAT(failure_of(64, files_apart), says("different barriers"));
}

TEST_CASE("a block has as much shared memory as the architecture gives") {
  simt::Options options;
  for (const auto& [architecture, kib] :
       {std::pair(75u, 64u), std::pair(80u, 163u), std::pair(86u, 99u), std::pair(89u, 99u),
        std::pair(90u, 227u)}) {
    options.architecture = architecture;
    CHECK(failure_of(
              32, [] {}, options, kib * 1024) == "");
    CHECK_THAT(failure_of(
                   32, [] {}, options, kib * 1024 + 1),
               says("bytes of shared memory"));
  }
}

TEST_CASE("a deadlock tells who waits where") {
  const std::string text = failure_of(64, [] {
    if (lane() < 16) {
      sync_warp();
    } else {
      sync_threads();
    }
  });
  CHECK_THAT(text, says("deadlock"));
  CHECK_THAT(text, says("32 threads, the first is 0: barrier of a warp of mask ffffffff"));
  CHECK_THAT(text, says("32 threads, the first is 16: the barrier of the block"));
}

TEST_CASE("a kernel that throws or traps ends the launch, and the next one runs") {
  for (int i = 0; i < 3; ++i) {
    CHECK_THAT(failure_of(64,
                          [] {
                            sync_threads();
                            if (thread_x() == 33) throw std::runtime_error("no more");
                            sync_threads();
                          }),
               says("the kernel threw no more") && says("thread 33"));
    CHECK_THAT(failure_of(96, [] { trap(); }), says("trap at"));
    CHECK_THAT(failure_of(32, [] { throw 1; }), says("the kernel threw"));
    CHECK(run_kernel(96, [] { sync_threads(); }).barriers == 1);
  }
}

TEST_CASE("launches that a GPU would refuse") {
  simt::Machine machine;
  const auto nothing = [] {};
  CHECK_THROWS_WITH(simt::launch(machine, {1, 1, 1}, {0, 1, 1}, 0, nothing), says("1 to 1024"));
  CHECK_THROWS_WITH(simt::launch(machine, {1, 1, 1}, {1025, 1, 1}, 0, nothing), says("1 to 1024"));
  CHECK_THROWS_WITH(simt::launch(machine, {1, 1, 1}, {48, 1, 1}, 0, nothing), says("whole warps"));
  CHECK_THROWS_WITH(simt::launch(machine, {1, 65536, 1}, {32, 1, 1}, 0, nothing), says("grid"));
  CHECK_THROWS_WITH(simt::launch(machine, {1, 1, 1}, {32, 1, 1}, 1 << 20, nothing),
                    says("shared memory"));
  CHECK_THROWS_WITH(
      simt::launch(machine, {1, 1, 1}, {32, 1, 1}, 0, [&] { run_kernel(32, nothing); }),
      says("a kernel launches a kernel"));
  std::uint32_t threads = 0;
  run_kernel(1024, [&] { atomic_add(&threads, 1u); });
  CHECK(threads == 1024);
}
