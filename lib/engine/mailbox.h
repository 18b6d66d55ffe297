// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_MAILBOX_H_
#define INCIPIT_ENGINE_MAILBOX_H_

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

  /// Whether a text that waits takes the next one in, so that texts never fill the box: for readers
  /// who may come late, or never. Before the first post().
  void join_texts(bool join) { joins_texts_ = join; }

  void post(Event event) {
    {
      const std::lock_guard lock(mutex_);
      if (events_.empty() || !join(events_.back(), event)) events_.push_back(std::move(event));
    }
    arrived_.notify_one();
  }

  bool full() const {
    const std::lock_guard lock(mutex_);
    return events_.size() >= kCapacity;
  }

  struct Taken {
    std::optional<Event> event;  // none: nothing is there
    bool was_full = false;       // and is no longer
  };
  /// Waits for an event.
  Taken take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !events_.empty(); });
    return take_first();
  }
  /// Takes an event, if there is one.
  Taken try_take() {
    const std::lock_guard lock(mutex_);
    return events_.empty() ? Taken{} : take_first();
  }

 private:
  /// Only the newest progress matters, and a slow reader must not fill the box with it.
  bool join(Event& last, Event& event) const {
    if (auto* progress = std::get_if<ProgressEvent>(&event)) {
      if (!std::holds_alternative<ProgressEvent>(last)) return false;
      last = *progress;
      return true;
    }
    auto* text = std::get_if<TextEvent>(&event);
    auto* before = std::get_if<TextEvent>(&last);
    if (!joins_texts_ || text == nullptr || before == nullptr) return false;
    before->piece += text->piece;
    before->tokens = text->tokens;
    return true;
  }

  Taken take_first() {
    Taken taken;
    taken.event = std::move(events_.front());
    events_.pop_front();
    taken.was_full = events_.size() + 1 == kCapacity;
    return taken;
  }

  bool joins_texts_ = false;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Event> events_;  // guarded by mutex_
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_MAILBOX_H_
