// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_THREAD_POOL_H_
#define INCIPIT_BASE_THREAD_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace incipit::base {

/// A fixed team of threads for short parallel regions (microseconds). The calling thread is member
/// 0, so a team of one has no thread of its own. Idle members sleep. All members run in the default
/// floating-point environment.
///
/// One thread may call at a time; regions do not nest.
class ThreadPool {
 public:
  explicit ThreadPool(unsigned members);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned members() const noexcept;

  /// Runs work(member) once on each member and returns when all are done. The first exception that
  /// a member throws is rethrown here, after all are done.
  void run(const std::function<void(unsigned member)>& work);

  /// Calls work(begin, end) on disjoint ranges that cover [0, count), in pieces of at least `grain`
  /// items, contiguous per member. Runs on the calling thread where one piece is enough.
  void for_ranges(std::size_t count, std::size_t grain,
                  const std::function<void(std::size_t begin, std::size_t end)>& work);

  /// Calls work(item, member) for each item of [0, count); members take the next item when they
  /// are free. Which member takes which item must not matter for the result.
  void for_each(std::size_t count,
                const std::function<void(std::size_t item, unsigned member)>& work);

 private:
  struct Team;
  std::unique_ptr<Team> team_;
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_THREAD_POOL_H_
