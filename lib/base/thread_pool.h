// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_THREAD_POOL_H_
#define INCIPIT_BASE_THREAD_POOL_H_

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

}  // namespace incipit::base

#endif  // INCIPIT_BASE_THREAD_POOL_H_
