// SPDX-License-Identifier: Apache-2.0
#include "simt/stream_scheduler.h"

#include <utility>
#include <vector>

namespace incipit::simt {

bool StreamScheduler::Event::passed() const noexcept {
  return stream == nullptr || stream->finished >= position;
}

StreamScheduler::Stream& StreamScheduler::make_stream() {
  Stream& stream = streams_.emplace_back();
  stream.machine.options = launches_;
  return stream;
}

StreamScheduler::Stream& StreamScheduler::owned(const Stream* stream) {
  for (Stream& own : streams_) {
    if (&own == stream) return own;
  }
  throw Failure("a stream of another device");
}

void StreamScheduler::run_one(Stream& stream) {
  const Work work = std::move(stream.pending.front());
  stream.pending.pop_front();
  if (work.run) work.run(stream.machine);
  ++stream.finished;
}

/// Runs one work of a random stream that can; false: none can, so none has any.
bool StreamScheduler::run_any() {
  std::vector<Stream*> ready;
  for (Stream& stream : streams_) {
    if (stream.can_run()) ready.push_back(&stream);
  }
  if (ready.empty()) return false;
  run_one(*ready[random_() % ready.size()]);
  return true;
}

/// What the other streams can do while this one stands still.
void StreamScheduler::run_others(const Stream& stream) {
  for (bool ran = true; ran;) {
    ran = false;
    for (Stream& other : streams_) {
      for (; &other != &stream && other.can_run(); ran = true) run_one(other);
    }
  }
}

void StreamScheduler::go_on() {
  switch (order_) {
    case StreamOrder::kLazy:
    case StreamOrder::kOthersFirst:
      return;
    case StreamOrder::kEager:
      finish_all();
      return;
    case StreamOrder::kRandom:
      if (random_() % 4 != 0) return;
      for (auto count = random_() % 3; count > 0 && run_any();) --count;
      return;
  }
}

void StreamScheduler::finish(Event event) {
  // Waits name earlier points only, so the chain of them ends.
  while (!event.passed()) {
    if (order_ == StreamOrder::kRandom) {
      if (!run_any()) throw Failure("an event of another device");
      continue;
    }
    Stream& stream = owned(event.stream);
    if (order_ == StreamOrder::kOthersFirst) run_others(stream);
    if (!stream.can_run()) finish(stream.pending.front().after);
    run_one(stream);
  }
}

void StreamScheduler::finish_all() {
  for (const Stream& stream : streams_) finish(stream.end());
}

void StreamScheduler::drop_all() {
  for (Stream& stream : streams_) {
    stream.finished += stream.pending.size();
    stream.pending.clear();
  }
}

}  // namespace incipit::simt
