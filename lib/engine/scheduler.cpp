// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/check.h"
#include "base/machine.h"
#include "engine/kv_noise.h"

namespace incipit::engine {
namespace {

using device::kBlockTokens;

std::uint64_t microseconds(Clock::duration time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time).count());
}

}  // namespace

Scheduler::Scheduler(model::Transformer& transformer, kv::KvCache& cache, kv::ColdTiers* tiers,
                     const text::Tokenizer& tokenizer, const Options& options, const base::Log& log)
    : transformer_(transformer),
      cache_(cache),
      tiers_(tiers),
      tokenizer_(tokenizer),
      options_(options),
      log_(log) {
  for (std::size_t i = 0; i < transformer_.config().vocabulary; ++i) {
    if (const auto id = static_cast<TokenId>(i); tokenizer_.is_end(id)) ends_.push_back(id);
  }
  thread_ = std::thread([this] { run(); });
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Scheduler::submit(std::shared_ptr<Request> request) {
  {
    const std::lock_guard lock(mutex_);
    ++stats_.requests;
    request->arrival = submitted_++;
    stats_.prompt_tokens += request->prompt_tokens;
    arrivals_.push_back(std::move(request));
    signalled_ = true;
  }
  changed_.notify_one();
}

void Scheduler::wake() {
  {
    const std::lock_guard lock(mutex_);
    signalled_ = true;
  }
  changed_.notify_one();
}

EngineStats Scheduler::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void Scheduler::run() {
  const base::ScopedFloatEnvironment float_environment;
  for (;;) {
    wait_for_work();
    {
      const std::lock_guard lock(mutex_);
      signalled_ = false;
      if (stopping_) break;
    }
    do {
      begin_ = Clock::now();
      wake_at_.reset();
      admit_arrivals();
      retire_cancelled();
      admit();
    } while (step());
  }
  admit_arrivals();
  const auto stop = [this](Request& request) {
    finish(request, FinishReason::kStopped);
    return true;
  };
  waiting_.erase_if(stop);
  std::erase_if(active_, [&](const auto& request) { return stop(*request); });
}

/// Where nothing happens before, work goes on then.
void Scheduler::wake_by(Clock::time_point time) {
  wake_at_ = wake_at_ ? std::min(*wake_at_, time) : time;
}

void Scheduler::wait_for_work() {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return signalled_ || stopping_; };
  if (wake_at_) {
    changed_.wait_until(lock, *wake_at_, ready);
  } else {
    changed_.wait(lock, ready);
  }
}

void Scheduler::retire_cancelled() {
  const Clock::time_point now = Clock::now();
  const auto retire = [&](Request& request) {
    if (const auto deadline = request.deadline()) {
      if (now >= *deadline) {
        request.cancel(FinishReason::kTimeout);
      } else {
        wake_by(*deadline);
      }
    }
    const int reason = request.cancelled.load();
    if (reason >= 0) finish(request, static_cast<FinishReason>(reason));
    return reason >= 0;
  };
  waiting_.erase_if(retire);
  std::erase_if(active_, [&](const auto& request) { return retire(*request); });
}

bool Scheduler::step() {
  follow_loads();
  const std::vector<Part> parts = reserve(plan());
  if (parts.empty()) return false;
  const Clock::time_point begin = Clock::now();
  const std::exception_ptr error = base::caught([&] { forward(parts); });
  const Clock::time_point end = Clock::now();
  if (error) {
    log_.error("a step failed; its requests end with the error");
    for (const Part& part : parts) fail(*part.request, base::copy_of(error));
  } else {
    for (const Part& part : parts) {
      std::exception_ptr failed = base::caught([&] { complete(part); });
      if (failed) fail(*part.request, std::move(failed));
    }
    learn_rate(parts, end - begin);
  }
  std::erase_if(active_, [](const auto& request) { return request->closed; });
  const std::lock_guard lock(mutex_);
  ++stats_.steps;
  stats_.forward_microseconds += microseconds(end - begin);
  stats_.step_microseconds += microseconds(Clock::now() - begin_);
  return !stopping_;
}

std::vector<Scheduler::Part> Scheduler::plan() {
  const Clock::time_point now = Clock::now();
  std::size_t decoding = 0;
  for (const auto& request : active_) {
    if (ready(*request)) {
      request->paused_since.reset();
      if (request->decodes()) ++decoding;
    } else if (!request->paused_since) {
      request->paused_since = now;
    }
  }
  // Prompts get on, too, however many decode.
  const std::size_t least = (options_.prefill_chunk + 3) / 4;
  std::size_t room = options_.prefill_chunk - std::min(options_.prefill_chunk - least, decoding);
  std::vector<Part> parts;
  for (const auto& request : active_) {
    if (request->paused_since) continue;
    const std::size_t missing = request->tokens.size() - request->computed;
    std::size_t rows = request->decodes() ? missing : std::min(missing, room);
    if (request->noise_is_due && !is_noise_due(*request)) {
      rows = std::min(rows, request->prompt_tokens - 1 - request->computed);
    }
    if (request->load != nullptr) rows = rows_beside_load(*request, rows);
    if (rows == 0) continue;
    if (!request->decodes()) room -= rows;
    const bool samples = rows == missing && request->kind == Request::Kind::kGenerate &&
                         request->params.max_tokens > 0;
    parts.push_back({request.get(), rows, samples});
  }
  return parts;
}

bool Scheduler::ready(const Request& request) const {
  if (request.params.on_text && request.mailbox.full()) return false;
  return !request.params.allowed_tokens || request.has_allowed();
}

void Scheduler::forward(std::span<const Part> parts) {
  ids_.clear();
  sequences_.clear();
  logit_rows_.clear();
  logit_owners_.clear();
  for (const Part& part : parts) {
    Request& request = *part.request;
    const std::size_t end = request.computed + part.rows;
    if (is_noise_due(request)) {
      const kv::BlockTable& table = request.table;
      const std::size_t blocks = (request.computed + kBlockTokens - 1) / kBlockTokens;
      add_noise(transformer_.device(), cache_.pool(), table.blocks().first(blocks),
                {request.params.seed, request.params.sample, request.params.kv_noise});
      request.noise_is_due = false;
    }
    cache_.extend(request.table, end);
    for (std::size_t position = request.computed; position < end; ++position) {
      // Those before a preemption are scored already.
      const bool scored = request.kind == Request::Kind::kScore &&
                          position >= request.result.logprobs.size() &&
                          position + 1 < request.tokens.size();
      if (scored || (part.samples && position + 1 == end)) {
        logit_rows_.push_back(static_cast<std::uint32_t>(ids_.size()));
        logit_owners_.push_back({&request, position});
      }
      ids_.push_back(request.tokens[position]);
    }
    sequences_.push_back({request.table.blocks(), static_cast<std::uint32_t>(request.computed),
                          static_cast<std::uint32_t>(part.rows)});
  }
  transformer_.forward(cache_.pool(), {ids_, sequences_, logit_rows_},
                       [this](std::size_t first, tensor::ConstMatrix logits) {
                         hand_out(std::span(logit_owners_).subspan(first, logits.rows), logits);
                       });
}

void Scheduler::complete(const Part& part) {
  Request& request = *part.request;
  if (request.closed) return;
  const bool prefilling = request.computed < request.prompt_tokens;
  request.computed += part.rows;
  cache_.commit(request.table, std::span(request.tokens).first(request.computed));
  if (prefilling && request.params.on_prefill) {
    const std::size_t done = std::min(request.computed, request.prompt_tokens);
    request.mailbox.post(ProgressEvent{done, request.prompt_tokens});
  }
  if (part.samples) {
    add_token(request, request.tokens.back());
  } else if (request.computed == request.prompt_tokens && request.generated() == 0) {
    finish(request, FinishReason::kMaxTokens);  // a score, or a prefill only
  }
}

void Scheduler::finish(Request& request, FinishReason reason) {
  if (request.closed) return;
  std::string rest = request.decoder.finish();
  if (!rest.empty()) rest = request.stops.push(rest);
  post_text(request, std::move(rest));
  post_text(request, request.stops.finish());
  store(request);
  request.table = {};
  request.result.finish = reason;
  request.result.kv_noise = request.params.kv_noise;
  request.result.total_time = since(request.begin);
  const auto first_generated =
      request.tokens.begin() + static_cast<std::ptrdiff_t>(request.prompt_tokens);
  request.result.token_ids.assign(first_generated, request.tokens.end());
  request.tokens.resize(request.prompt_tokens);
  request.result.prompt_ids = std::move(request.tokens);
  request.closed = true;
  request.mailbox.post(ClosedEvent{});
}

void Scheduler::fail(Request& request, std::exception_ptr error) {
  if (request.closed) return;
  if (request.load != nullptr) static_cast<void>(base::caught([&] { settle_load(request); }));
  request.table = {};
  request.closed = true;
  request.mailbox.post(ClosedEvent{std::move(error)});
}

}  // namespace incipit::engine
