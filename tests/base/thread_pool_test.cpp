// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <functional>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "incipit/error.h"
#include "support/catch.h"

namespace incipit::base {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a region runs once on each member, the caller being member 0") {
  for (const unsigned members : {1u, 2u, 3u, 8u}) {
    ThreadPool pool(members);
    REQUIRE(pool.members() == members);
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::vector<int> calls(members);
      std::vector<std::thread::id> threads(members);
      pool.run([&](unsigned member) {
        ++calls.at(member);
        threads[member] = std::this_thread::get_id();
      });
      REQUIRE(calls == std::vector<int>(members, 1));
      REQUIRE(threads[0] == std::this_thread::get_id());
      REQUIRE(std::set(threads.begin(), threads.end()).size() == members);
    }
  }
}

TEST_CASE("what a region wrote is seen after it, without locks") {
  ThreadPool pool(4);
  std::vector<std::uint64_t> sums(4);
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    pool.run([&](unsigned member) { sums[(member + i) % 4] += i; });
  }
  CHECK(sums == std::vector<std::uint64_t>(4, 500500));
}

TEST_CASE("sleeping members wake up") {
  ThreadPool pool(3);
  std::atomic<int> calls = 0;
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(5ms);
    pool.run([&](unsigned member) {
      if (member == 1) std::this_thread::sleep_for(5ms);  // and so does the caller
      ++calls;
    });
  }
  CHECK(calls == 15);
}

TEST_CASE("idle members use no CPU") {
  ThreadPool pool(4);
  pool.run([](unsigned) {});
  std::this_thread::sleep_for(20ms);
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(200ms);
  const auto used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(used < 0.05);
}

TEST_CASE("a pool that never ran, and many of them, end") {
  for (int i = 0; i < 20; ++i) ThreadPool pool(4);
  SUCCEED();
}

TEST_CASE("a pool has at least one member") { CHECK_THROWS_AS(ThreadPool(0), Error); }

TEST_CASE("an exception is rethrown after all members are done, and the pool goes on") {
  for (const unsigned members : {1u, 4u}) {
    ThreadPool pool(members);
    for (unsigned thrower = 0; thrower < members; ++thrower) {
      std::atomic<unsigned> done = 0;
      CHECK_THROWS_WITH(pool.run([&](unsigned member) {
        ++done;
        if (member == thrower) throw std::runtime_error("from " + std::to_string(member));
      }),
                        "from " + std::to_string(thrower));
      CHECK(done == members);
    }
    CHECK_THROWS_AS(pool.run([](unsigned) { throw std::logic_error("all"); }), std::logic_error);
    pool.run([](unsigned) {});
  }
}

TEST_CASE("a nested region is refused") {
  ThreadPool pool(2);
  CHECK_THROWS_AS(pool.run([&](unsigned) { pool.run([](unsigned) {}); }), Error);
  pool.run([](unsigned) {});
}

TEST_CASE("threads may take turns as the caller") {
  ThreadPool pool(3);
  int total = 0;
  for (int i = 0; i < 5; ++i) {
    std::thread([&] {
      std::atomic<int> calls = 0;
      pool.run([&](unsigned) { ++calls; });
      total += calls;
    }).join();
  }
  CHECK(total == 15);
}

TEST_CASE("a std::function serves as work") {
  ThreadPool pool(2);
  std::atomic<unsigned> sum = 0;
  const std::function<void(unsigned)> work = [&](unsigned member) { sum += member + 1; };
  pool.run(work);
  CHECK(sum == 3);
}

TEST_CASE("ranges cover everything once and keep to the grain") {
  for (const unsigned members : {1u, 2u, 3u, 5u}) {
    ThreadPool pool(members);
    for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 31u, 32u, 100u}) {
      for (const std::size_t grain : {0u, 1u, 7u, 16u, 1000u}) {
        CAPTURE(members, count, grain);
        std::vector<int> seen(count);
        std::atomic<std::size_t> pieces = 0, shortest = count;
        pool.for_ranges(count, grain, [&](std::size_t begin, std::size_t end) {
          ++pieces;
          for (auto low = shortest.load();
               end - begin < low && !shortest.compare_exchange_weak(low, end - begin);) {
          }
          for (std::size_t i = begin; i < end; ++i) ++seen[i];
        });
        CHECK(seen == std::vector<int>(count, 1));
        CHECK(pieces <= members);
        if (pieces > 1) CHECK(shortest >= grain);
        if (count < 2 * std::max<std::size_t>(grain, 1)) CHECK(pieces == (count == 0 ? 0u : 1u));
      }
    }
  }
}

TEST_CASE("one range stays on the calling thread") {
  ThreadPool pool(4);
  std::thread::id where;
  pool.for_ranges(10, 10, [&](std::size_t, std::size_t) { where = std::this_thread::get_id(); });
  CHECK(where == std::this_thread::get_id());
}

TEST_CASE("each item is taken once") {
  for (const unsigned members : {1u, 2u, 5u}) {
    ThreadPool pool(members);
    for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 1000u}) {
      std::vector<int> seen(count);
      std::atomic<bool> member_in_range = true;
      pool.for_each(count, [&](std::size_t item, unsigned member) {
        ++seen[item];
        if (member >= members) member_in_range = false;
      });
      CAPTURE(members, count);
      CHECK(seen == std::vector<int>(count, 1));
      CHECK(member_in_range);
    }
  }
}

TEST_CASE("shares cover everything once, in runs that begin at multiples of the grain") {
  for (const unsigned members : {1u, 2u, 3u}) {
    ThreadPool pool(members);
    for (const std::size_t count : {0u, 1u, 2u, 15u, 16u, 17u, 100u, 3072u}) {
      for (const std::size_t grain : {1u, 2u, 3u}) {
        Shares shares(count, grain, members);
        std::vector<std::atomic<int>> taken(count);
        std::atomic<int> crooked = 0;
        pool.run([&](unsigned member) {
          shares.take(member, [&](std::size_t begin, std::size_t end) {
            crooked += begin % grain == 0 && begin < end && end <= count ? 0 : 1;
            for (std::size_t i = begin; i < end; ++i) ++taken[i];
          });
        });
        CHECK(crooked == 0);
        CHECK(std::ranges::all_of(taken, [](const auto& times) { return times == 1; }));
      }
    }
  }
}

TEST_CASE("a fast member takes all of the rest, and a slow one still its own run") {
  Shares shares(64, 2, 2);
  std::vector<std::pair<std::size_t, std::size_t>> fast, slow;
  shares.take(1, [&](std::size_t begin, std::size_t end) { fast.push_back({begin, end}); });
  shares.take(0, [&](std::size_t begin, std::size_t end) { slow.push_back({begin, end}); });
  using Runs = std::vector<std::pair<std::size_t, std::size_t>>;
  CHECK(fast == Runs{{30, 60}, {60, 62}, {62, 64}});
  CHECK(slow == Runs{{0, 30}});
}

TEST_CASE("all members run in the default floating-point environment") {
  REQUIRE(std::fesetround(FE_UPWARD) == 0);
  std::vector<int> rounding(3, -1), ranges, items;
  {
    ThreadPool pool(3);  // its threads inherit the host's environment
    pool.run([&](unsigned member) { rounding[member] = std::fegetround(); });
    pool.for_ranges(1, 1, [&](std::size_t, std::size_t) { ranges.push_back(std::fegetround()); });
    pool.for_each(1, [&](std::size_t, unsigned) { items.push_back(std::fegetround()); });
  }
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  CHECK(rounding == std::vector<int>(3, FE_TONEAREST));
  CHECK(ranges == std::vector<int>{FE_TONEAREST});
  CHECK(items == std::vector<int>{FE_TONEAREST});
  CHECK(after == FE_UPWARD);
}

TEST_CASE("signals are left to the host's threads") {
  ThreadPool pool(2);
  std::vector<int> blocked(2, -1), fault_blocked(2, -1);
  pool.run([&](unsigned member) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    blocked[member] = sigismember(&mask, SIGTERM);
    fault_blocked[member] = sigismember(&mask, SIGSEGV);
  });
  CHECK(blocked == std::vector<int>{0, 1});
  CHECK(fault_blocked == std::vector<int>{0, 0});
}

}  // namespace
}  // namespace incipit::base
