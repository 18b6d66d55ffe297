// SPDX-License-Identifier: Apache-2.0
#include "engine/delivery.h"

#include <algorithm>
#include <utility>

namespace incipit::engine {

Delivery::Delivery(Scheduler& scheduler, std::shared_ptr<Request> request)
    : scheduler_(scheduler), request_(std::move(request)) {
  if (request_->params.allowed_tokens) {
    request_->set_allowed(request_->params.allowed_tokens({}));
  }
  // Before it is submitted: who has been told to stop already must not compute anything.
  on_stop_.emplace(request_->params.stop, [this] { cancel(FinishReason::kStopped); });
  scheduler_.submit(request_);
}

// Until the box is closed the scheduler may still have work on the way that belongs to it.
Delivery::~Delivery() {
  if (ended_) return;
  cancel(FinishReason::kStopped);
  while (!ended_) {
    const Mailbox::Taken taken = request_->mailbox.take();
    ended_ = std::holds_alternative<ClosedEvent>(*taken.event);
  }
}

void Delivery::cancel(FinishReason reason) noexcept {
  request_->cancel(reason);
  scheduler_.wake();
}

std::optional<std::string> Delivery::next() {
  while (!ended_ && fresh_.empty()) handle(request_->mailbox.take());
  if (!fresh_.empty()) return std::exchange(fresh_, {});
  if (error_) std::rethrow_exception(error_);
  return std::nullopt;
}

bool Delivery::poll() {
  while (!ended_) {
    Mailbox::Taken taken = request_->mailbox.try_take();
    if (!taken.event) break;
    handle(std::move(taken));
  }
  return ended_;
}

GenerateResult Delivery::finish() {
  while (!ended_) handle(request_->mailbox.take());
  if (error_) std::rethrow_exception(error_);
  if (reader_ended_) cut_to_what_was_read();
  return std::move(request_->result);
}

// When a callback throws, nothing more is delivered, and the request is ended.
void Delivery::handle(Mailbox::Taken taken) {
  if (taken.was_full) scheduler_.wake();
  if (auto* closed = std::get_if<ClosedEvent>(&*taken.event)) {
    ended_ = true;
    if (!error_) error_ = std::move(closed->error);
    return;
  }
  if (error_ || reader_ended_) return;
  try {
    on_event(*taken.event);
  } catch (...) {
    error_ = std::current_exception();
    cancel(FinishReason::kStopped);
  }
}

void Delivery::on_event(Event& event) {
  const GenerateParams& params = request_->params;
  if (auto* text = std::get_if<TextEvent>(&event)) {
    fresh_ += text->piece;
    if (!params.on_text) return;
    read_ += text->piece;
    read_tokens_ = text->tokens;
    if (params.on_text(text->piece)) return;
    reader_ended_ = true;
    cancel(FinishReason::kStopped);
  } else if (const auto* progress = std::get_if<ProgressEvent>(&event)) {
    params.on_prefill(progress->done, progress->total);
  } else if (const auto* token = std::get_if<TokenEvent>(&event)) {
    so_far_.push_back(token->id);
    request_->set_allowed(params.allowed_tokens(so_far_));
    scheduler_.wake();
  }
}

/// The result is what the reader saw, whatever was made meanwhile.
void Delivery::cut_to_what_was_read() {
  GenerateResult& result = request_->result;
  result.finish = FinishReason::kStopped;
  result.text = std::move(read_);
  result.token_ids.resize(std::min(read_tokens_, result.token_ids.size()));
  if (request_->params.logprobs == 0) return;
  result.logprobs.resize(result.token_ids.size());
  result.top.resize(result.token_ids.size());
}

}  // namespace incipit::engine
