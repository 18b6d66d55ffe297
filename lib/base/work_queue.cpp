// SPDX-License-Identifier: Apache-2.0
#include "base/work_queue.h"

#include <utility>

#include "base/caught.h"

namespace incipit::base {

WorkQueue::WorkQueue(unsigned threads) {
  const std::exception_ptr error = caught([&] {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  });
  if (!error) return;
  stop();
  std::rethrow_exception(error);
}

WorkQueue::~WorkQueue() { stop(); }

void WorkQueue::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkQueue::push(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  arrived_.notify_one();
}

void WorkQueue::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    static_cast<void>(caught(work));
  }
}

}  // namespace incipit::base
