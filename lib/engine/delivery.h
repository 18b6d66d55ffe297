// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_DELIVERY_H_
#define INCIPIT_ENGINE_DELIVERY_H_

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/scheduler.h"

namespace incipit::engine {

/// The reader's end of a request: runs its callbacks, on the thread that asks. Submits the request
/// when it is made, and ends it when it goes.
class Delivery {
 public:
  Delivery(Scheduler& scheduler, std::shared_ptr<Request> request);
  ~Delivery();
  Delivery(const Delivery&) = delete;
  Delivery& operator=(const Delivery&) = delete;

  /// The text that has come since the last call, waiting for some; nullopt: there is none left.
  /// Throws as finish().
  std::optional<std::string> next();
  /// Runs what is due. True once the request has ended.
  bool poll();
  /// Waits for the end. Throws what the request failed with, or what a callback threw.
  GenerateResult finish();
  /// From any thread.
  void cancel(FinishReason reason) noexcept;

 private:
  void handle(Mailbox::Taken taken);
  void on_event(Event& event);
  void cut_to_what_was_read();

  Scheduler& scheduler_;
  const std::shared_ptr<Request> request_;
  std::vector<TokenId> so_far_;    // of params.allowed_tokens
  std::string fresh_;              // text for next()
  std::string read_;               // by params.on_text
  std::size_t read_tokens_ = 0;    // made when this text was complete
  bool reader_ended_ = false;      // params.on_text has returned false
  bool ended_ = false;             // the mailbox is closed
  std::exception_ptr error_ = {};  // of a callback, or of the request
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;  // last: calls cancel()
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_DELIVERY_H_
