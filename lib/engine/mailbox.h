// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_MAILBOX_H_
#define INCIPIT_ENGINE_MAILBOX_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "incipit/sampling.h"

namespace incipit::engine {

/// What the scheduler has to tell the thread that called the engine.
struct TextEvent {
  std::string piece;
  std::size_t tokens;  // made when this text was complete
};
struct ProgressEvent {
  std::size_t done, total;  // prompt tokens
};
struct TokenEvent {
  TokenId id;  // the caller must say what may follow
};
struct ClosedEvent {
  std::exception_ptr error;  // null: the result is ready
};
using Event = std::variant<TextEvent, ProgressEvent, TokenEvent, ClosedEvent>;

/// The way from the scheduler to one calling thread. Bounded: the scheduler makes no more tokens
/// for a request whose mailbox is full, and no other request notices.
class Mailbox {
 public:
  /// Events that wait at most before full() says so.
  static constexpr std::size_t kCapacity = 64;

  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      // Only the newest progress matters, and a slow reader must not fill the box with it.
      if (!events_.empty() && std::holds_alternative<ProgressEvent>(event) &&
          std::holds_alternative<ProgressEvent>(events_.back())) {
        events_.back() = std::move(event);
      } else {
        events_.push_back(std::move(event));
      }
    }
    arrived_.notify_one();
  }

  bool full() const {
    const std::lock_guard lock(mutex_);
    return events_.size() >= kCapacity;
  }

  struct Taken {
    std::optional<Event> event;  // none: the deadline passed
    bool was_full = false;       // and is no longer
  };
  /// Waits for an event, until the deadline if there is one.
  Taken take(const std::optional<std::chrono::steady_clock::time_point>& deadline) {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return !events_.empty(); };
    if (!deadline) {
      arrived_.wait(lock, ready);
    } else if (!arrived_.wait_until(lock, *deadline, ready)) {
      return {};
    }
    Taken taken;
    taken.event = std::move(events_.front());
    events_.pop_front();
    taken.was_full = events_.size() + 1 == kCapacity;
    return taken;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;  // guarded by mutex_
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_MAILBOX_H_
