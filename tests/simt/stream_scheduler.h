// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_STREAM_SCHEDULER_H_
#define INCIPIT_TESTS_SIMT_STREAM_SCHEDULER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <random>

#include "simt/runtime.h"
#include "simt/types.h"

namespace incipit::simt {

/// Streams of queued work, and which of it runs next. Not thread-safe.
class StreamScheduler {
 public:
  struct Stream;

  /// A point in a stream; of none: in the past.
  struct Event {
    const Stream* stream = nullptr;
    std::uint64_t position = 0;  // works of the stream that are before it

    bool passed() const noexcept;
  };

  struct Work {
    std::function<void(Machine&)> run = {};
    Event after = {};
  };

  struct Stream {
    Machine machine = {};  // of its kernels
    std::deque<Work> pending = {};
    std::uint64_t finished = 0;

    bool can_run() const noexcept { return !pending.empty() && pending.front().after.passed(); }
    Event end() const noexcept { return {this, finished + pending.size()}; }
  };

  StreamScheduler(StreamOrder order, std::uint64_t seed, const Options& launches)
      : order_(order), launches_(launches), random_(seed) {}

  /// Both stay where they are.
  Stream& make_stream();
  Event& make_event() { return events_.emplace_back(); }

  void add(Stream& stream, Work work) { stream.pending.push_back(std::move(work)); }
  /// Between two calls of the host: what the order runs on its own.
  void go_on();
  /// Runs what must have run by the time the event has passed.
  void finish(Event event);
  void finish_all();
  /// The device is gone, and all work with it.
  void drop_all();

  const std::deque<Stream>& streams() const noexcept { return streams_; }

 private:
  Stream& owned(const Stream* stream);
  void run_one(Stream& stream);
  bool run_any();
  void run_others(const Stream& stream);

  const StreamOrder order_;
  const Options launches_;
  std::mt19937_64 random_;
  std::deque<Stream> streams_;
  std::deque<Event> events_;
};

}  // namespace incipit::simt

#endif  // INCIPIT_TESTS_SIMT_STREAM_SCHEDULER_H_
