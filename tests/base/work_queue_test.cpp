// SPDX-License-Identifier: Apache-2.0
#include "base/work_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/catch.h"

namespace incipit::base {
namespace {

TEST_CASE("Work is done in the order in which it comes", "[work_queue]") {
  std::vector<int> order;
  std::promise<void> done;
  WorkQueue queue(1);
  for (int i = 0; i < 100; ++i) queue.push([&order, i] { order.push_back(i); });
  queue.push([&] { done.set_value(); });
  done.get_future().wait();
  CHECK(order.size() == 100);
  CHECK(std::ranges::is_sorted(order));
}

TEST_CASE("Work that throws ends nothing but itself", "[work_queue]") {
  std::promise<void> done;
  WorkQueue queue(1);
  queue.push([] { throw std::runtime_error("no"); });
  queue.push([&] { done.set_value(); });
  done.get_future().wait();
  SUCCEED();
}

TEST_CASE("All threads help", "[work_queue]") {
  std::promise<void> second_runs, first_saw_it;
  WorkQueue queue(2);
  CHECK(queue.threads() == 2);
  queue.push([&] {
    second_runs.get_future().wait();
    first_saw_it.set_value();
  });
  queue.push([&] { second_runs.set_value(); });
  first_saw_it.get_future().wait();
  SUCCEED();
}

TEST_CASE("The queue waits for what runs and leaves what waits", "[work_queue]") {
  std::atomic<int> ran = 0;
  {
    std::promise<void> begun;
    WorkQueue queue(1);
    queue.push([&] {
      begun.set_value();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++ran;
    });
    begun.get_future().wait();
    queue.push([&] { ran += 100; });
  }
  CHECK((ran == 1));
}

}  // namespace
}  // namespace incipit::base
