// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/machine.h"

namespace incipit::base {
namespace {

void pause_cpu() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Waits for others: spins for a while, then sleeps. Where each member has a CPU of its own, regions
// follow each other within microseconds, and a sleep would cost more than the gap. Where a
// neighbour is busy, whoever is waited for may need this very CPU, and spinning only keeps it from
// running. So a spin in vain halves the next one, a successful one doubles it, and now and then a
// long one is tried, for the neighbour may have gone.
class Waiter {
 public:
  // Returns once `word` differs from `old`, with the new value.
  std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word,
                                std::uint32_t old) noexcept {
    for (int spin = 0; spin < spins_; ++spin) {
      const std::uint32_t value = word.load(std::memory_order_acquire);
      if (value != old) {
        spins_ = std::min(spins_ * 2, kMostSpins);
        return value;
      }
      pause_cpu();
    }
    spins_ = ++sleeps_ % kRetry == 0 ? kMostSpins : std::max(spins_ / 2, kFewestSpins);
    word.wait(old, std::memory_order_acquire);
    return word.load(std::memory_order_acquire);
  }

 private:
  static constexpr int kFewestSpins = 32, kMostSpins = 2048;  // about 1 us and 50 to 100 us
  static constexpr unsigned kRetry = 64;

  int spins_ = kMostSpins;
  unsigned sleeps_ = 0;
};

// Threads that start while this lives leave the process's signals to the host's threads. Faults
// and the profiler's clock concern the thread that causes them and stay open.
class ScopedSignalMask {
 public:
  ScopedSignalMask() noexcept {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) {
      sigdelset(&blocked, open);
    }
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~ScopedSignalMask() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  ScopedSignalMask(const ScopedSignalMask&) = delete;
  ScopedSignalMask& operator=(const ScopedSignalMask&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

// A region is published by a new `region_` and is over when `running_` is back to zero. `work_` and
// `error_` are written by the caller before the one and read after the other, so they need no lock.
class ThreadPool::Team {
 public:
  using Work = FunctionRef<void(unsigned member)>;

  explicit Team(unsigned members) { threads_.reserve(members - 1); }
  ~Team() {
    work_ = nullptr;
    next_region();
    for (std::thread& thread : threads_) thread.join();
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void start(unsigned members) {
    const ScopedSignalMask mask;
    for (unsigned member = 1; member < members; ++member) {
      threads_.emplace_back([this, member] { serve(member); });
    }
  }

  unsigned members() const noexcept { return static_cast<unsigned>(threads_.size()) + 1; }

  void run(const Work& work) {
    INCIPIT_CHECK(!busy_.exchange(true, std::memory_order_acquire));
    work_ = &work;
    running_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_relaxed);
    next_region();
    attempt(work, 0);
    for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;) {
      left = caller_.wait_for_change(running_, left);
    }
    const std::exception_ptr error = std::exchange(error_, nullptr);
    failed_.store(false, std::memory_order_relaxed);
    busy_.store(false, std::memory_order_release);
    if (error) std::rethrow_exception(error);
  }

 private:
  void next_region() noexcept {
    region_.fetch_add(1, std::memory_order_release);
    region_.notify_all();
  }

  void serve(unsigned member) noexcept {
    const ScopedFloatEnvironment floats;
    Waiter waiter;
    for (std::uint32_t seen = 0;;) {
      seen = waiter.wait_for_change(region_, seen);
      if (work_ == nullptr) return;
      attempt(*work_, member);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
    }
  }

  void attempt(const Work& work, unsigned member) noexcept {
    try {
      work(member);
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
  }

  // Apart, so that members which watch one do not slow down writes of the other.
  alignas(64) std::atomic<std::uint32_t> region_ = 0;
  alignas(64) std::atomic<std::uint32_t> running_ = 0;  // members at work, without the caller
  alignas(64) std::atomic<bool> busy_ = false;
  std::atomic<bool> failed_ = false;
  Waiter caller_;
  const Work* work_ = nullptr;  // nullptr: leave
  std::exception_ptr error_;    // written by whoever set failed_
  std::vector<std::thread> threads_;
};

ThreadPool::ThreadPool(unsigned members) {
  INCIPIT_CHECK(members >= 1);
  team_ = std::make_unique<Team>(members);
  try {
    team_->start(members);
  } catch (const std::system_error& error) {
    throw_error(ErrorCode::kOutOfMemory, "cannot start " + std::to_string(members) +
                                             " threads: " + error.what() +
                                             "; ask for fewer or raise the process limit");
  }
}

ThreadPool::~ThreadPool() = default;

unsigned ThreadPool::members() const noexcept { return team_->members(); }

void ThreadPool::run(FunctionRef<void(unsigned member)> work) {
  const ScopedFloatEnvironment floats;
  if (members() == 1) {
    work(0);
  } else {
    team_->run(work);
  }
}

void ThreadPool::for_ranges(std::size_t count, std::size_t grain,
                            FunctionRef<void(std::size_t begin, std::size_t end)> work) {
  if (count == 0) return;
  const std::size_t pieces =
      std::clamp<std::size_t>(count / std::max<std::size_t>(grain, 1), 1, members());
  if (pieces == 1) {
    const ScopedFloatEnvironment floats;
    work(0, count);
    return;
  }
  const std::size_t share = count / pieces;
  const std::size_t longer = count % pieces;  // the first ones take one item more
  run([&](unsigned member) {
    if (member >= pieces) return;
    const std::size_t begin = member * share + std::min<std::size_t>(member, longer);
    work(begin, begin + share + (member < longer ? 1 : 0));
  });
}

void ThreadPool::for_each(std::size_t count,
                          FunctionRef<void(std::size_t item, unsigned member)> work) {
  if (count == 0) return;
  if (count == 1) {
    const ScopedFloatEnvironment floats;
    work(0, 0);
    return;
  }
  std::atomic<std::size_t> next = 0;
  run([&](unsigned member) {
    for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) {
      work(item, member);
    }
  });
}

}  // namespace incipit::base
