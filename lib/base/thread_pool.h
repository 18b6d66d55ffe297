// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_THREAD_POOL_H_
#define INCIPIT_BASE_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>

#include "base/function_ref.h"

namespace incipit::base {

/// A fixed team of threads for short parallel regions (microseconds). The calling thread is member
/// 0, so a team of one has no thread of its own. Idle members sleep. Members run in the default
/// floating-point environment; signals are left to the host's threads.
///
/// Any thread may call, one at a time; regions do not nest. Breaking either is Error{kInternal}.
class ThreadPool {
 public:
  /// Throws Error{kOutOfMemory} where the system refuses a thread.
  explicit ThreadPool(unsigned members);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned members() const noexcept;

  /// Runs work(member) once on each member and returns when all are done. The first exception that
  /// a member throws is rethrown here, after all are done.
  void run(FunctionRef<void(unsigned member)> work);

  /// Calls work(begin, end) on disjoint ranges that cover [0, count), in pieces of at least `grain`
  /// items, contiguous per member. Runs on the calling thread where one piece is enough.
  void for_ranges(std::size_t count, std::size_t grain,
                  FunctionRef<void(std::size_t begin, std::size_t end)> work);

  /// Calls work(item, member) for each item of [0, count); members take the next item when they
  /// are free. Which member takes which item must not matter for the result.
  void for_each(std::size_t count, FunctionRef<void(std::size_t item, unsigned member)> work);

 private:
  class Team;
  std::unique_ptr<Team> team_;
};

/// [0, count) shared out among the members of one region. Each has a long run of its own first, as
/// memory likes it, and whoever is done takes pieces of the rest, so that nobody waits long for a
/// slower one. Which member takes which items must not matter for the result.
class Shares {
 public:
  /// Runs and pieces begin at multiples of `grain`.
  Shares(std::size_t count, std::size_t grain, unsigned members) noexcept
      : count_(count),
        piece_(std::max<std::size_t>(count / kPieces / grain, 1) * grain),
        own_((count - count / kRestIs) / members / grain * grain),
        next_(own_ * members) {}

  /// Calls work(begin, end) on the member's run and on pieces of the rest, until none is left.
  template <class Work>
  void take(unsigned member, const Work& work) {
    if (own_ > 0) work(own_ * member, own_ * (member + 1));
    for (std::size_t begin;
         (begin = next_.fetch_add(piece_, std::memory_order_relaxed)) < count_;) {
      work(begin, std::min(begin + piece_, count_));
    }
  }

 private:
  static constexpr std::size_t kRestIs = 16;  // of all, the part that is not shared out beforehand
  static constexpr std::size_t kPieces = 64;  // that all would make

  const std::size_t count_, piece_, own_;
  std::atomic<std::size_t> next_;
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_THREAD_POOL_H_
