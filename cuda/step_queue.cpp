// SPDX-License-Identifier: Apache-2.0
#include "cuda/step_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace incipit::cuda {

void LaunchList::add(const Launch& launch) {
  constexpr std::size_t kUnit = sizeof(Unit);
  const std::size_t offset = memory_.size();
  memory_.resize(offset + (launch.bytes + kUnit - 1) / kUnit);  // zeros, so that lists compare
  std::memcpy(memory_.data() + offset, launch.body, launch.bytes);
  launches_.push_back({launch.call, offset, launch.bytes});
}

void LaunchList::clear() noexcept {
  launches_.clear();
  memory_.clear();
}

Launch LaunchList::operator[](std::size_t index) const noexcept {
  const Kept& kept = launches_[index];
  return {kept.call, memory_.data() + kept.offset, kept.bytes};
}

std::vector<Launch> LaunchList::views() const {
  std::vector<Launch> all;
  for (std::size_t i = 0; i < size(); ++i) all.push_back((*this)[i]);
  return all;
}

bool operator==(const LaunchList& a, const LaunchList& b) noexcept {
  return a.launches_ == b.launches_ && a.memory_.size() == b.memory_.size() &&
         (a.memory_.empty() || std::memcmp(a.memory_.data(), b.memory_.data(),
                                           a.memory_.size() * sizeof(LaunchList::Unit)) == 0);
}

void StepQueue::add(const Launch& launch) {
  if (keeps_) {
    kept_.add(launch);
  } else {
    runtime_.queue(stream_, launch);
  }
}

void StepQueue::begin(std::size_t rows) {
  flush();
  keeps_ = rows > 0 && rows <= kMostRows;
  rows_ = rows;
}

void StepQueue::queue_all(const LaunchList& launches) {
  for (std::size_t i = 0; i < launches.size(); ++i) runtime_.queue(stream_, launches[i]);
}

void StepQueue::flush() {
  keeps_ = false;
  queue_all(std::exchange(kept_, {}));
}

StepQueue::Remembered& StepQueue::remembered(std::size_t rows) {
  Remembered* oldest = &steps_[0];
  for (Remembered& step : steps_) {
    if (step.rows == rows) return step;
    if (step.used < oldest->used) oldest = &step;
  }
  *oldest = {};
  oldest->rows = rows;
  return *oldest;
}

/// A step that comes once is not worth a graph; the second of its kind makes one.
void StepQueue::end() {
  if (!keeps_ || kept_.empty()) return flush();
  keeps_ = false;
  Remembered& step = remembered(rows_);
  step.used = ++clock_;
  const bool known = step.launches == kept_;
  if (!known) {
    std::swap(step.launches, kept_);
    step.state = GraphOf::kOlder;
  }
  kept_.clear();
  if (known && step.state == GraphOf::kOlder) {
    step.state = GraphOf::kRefused;  // should it throw
    step.graph = runtime_.make_graph(step.launches.views(), std::move(step.graph));
    if (step.graph != nullptr) step.state = GraphOf::kThis;
  }
  if (step.state == GraphOf::kThis) {
    step.graph->launch(stream_);
  } else {
    queue_all(step.launches);
  }
}

}  // namespace incipit::cuda
