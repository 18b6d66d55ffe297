// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_WORK_QUEUE_H_
#define INCIPIT_BASE_WORK_QUEUE_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace incipit::base {

/// Threads that do what waits, first come, first served; for work that waits for disks and
/// networks. Work that throws is over and nothing else.
class WorkQueue {
 public:
  explicit WorkQueue(unsigned threads);
  /// Does not begin what still waits; ends when what runs has ended.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void push(std::function<void()> work);
  unsigned threads() const noexcept { return static_cast<unsigned>(threads_.size()); }

 private:
  void run();
  void stop() noexcept;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::function<void()>> waiting_;  // guarded by mutex_
  bool stopping_ = false;                      // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_WORK_QUEUE_H_
