// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/caught.h"
#include "base/check.h"
#include "base/machine.h"
#include "engine/exact_math.h"

namespace incipit::engine {
namespace {

// After which a request that found no room in the pool asks again, where nothing else happens.
constexpr std::chrono::milliseconds kRetry{5};

std::chrono::microseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
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
      admit_arrivals();
      retire_cancelled();
      admit();
    } while (step());
  }
  admit_arrivals();
  for (const auto& request : waiting_) finish(*request, FinishReason::kStopped);
  for (const auto& request : active_) finish(*request, FinishReason::kStopped);
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

void Scheduler::admit_arrivals() {
  const std::lock_guard lock(mutex_);
  std::ranges::move(arrivals_, std::back_inserter(waiting_));
  arrivals_.clear();
}

void Scheduler::retire_cancelled() {
  const auto retire = [this](const std::shared_ptr<Request>& request) {
    const int reason = request->cancelled.load();
    if (reason >= 0) finish(*request, static_cast<FinishReason>(reason));
    return reason >= 0;
  };
  std::erase_if(waiting_, retire);
  std::erase_if(active_, retire);
}

/// Blocks that wait to be stored make room where nothing else can.
bool Scheduler::start(Request& request, kv::KvCache::Match& match) {
  const auto try_to = [&] {
    return cache_.start(request.name_space, request.labels, request.tokens, request.total_tokens,
                        match);
  };
  if (try_to()) return true;
  if (!active_.empty() || tiers_ == nullptr) return false;
  tiers_->leave(cache_);
  return try_to();
}

void Scheduler::admit() {
  while (!waiting_.empty()) {
    Request& request = *waiting_.front();
    kv::KvCache::Match match;
    bool started = false;
    std::exception_ptr error = base::caught([&] { started = start(request, match); });
    // It fits into the pool, as its caller has seen to; so whoever holds the blocks gives them
    // back.
    if (!started && !error) return;
    if (error) {
      fail(request, std::move(error));
      waiting_.pop_front();
      continue;
    }
    request.table = std::move(match.table);
    request.computed = match.tokens;
    request.result.reused_tokens = match.tokens;
    {
      const std::lock_guard lock(mutex_);
      stats_.reused_tokens += match.tokens;
    }
    if (request.params.on_prefill) {
      request.mailbox.post(ProgressEvent{request.computed, request.prompt_tokens});
    }
    if (base::caught([&] { begin_load(request); })) {
      log_.warning("the cold tiers could not be asked");
    }
    active_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

bool Scheduler::step() {
  follow_loads();
  const std::vector<Part> parts = plan();
  if (parts.empty()) {
    // Blocks come back also from others than requests, who tell nobody.
    if (!waiting_.empty()) {
      const Clock::time_point soon = Clock::now() + kRetry;
      wake_at_ = wake_at_ ? std::min(*wake_at_, soon) : soon;
    }
    return false;
  }
  const Clock::time_point begin = Clock::now();
  const std::exception_ptr error = base::caught([&] {
    forward(parts);
    complete(parts);
  });
  if (error) {
    log_.error("a step failed; its requests end with the error");
    for (const Part& part : parts) fail(*part.request, base::copy_of(error));
  }
  std::erase_if(active_, [](const auto& request) { return request->closed; });
  if (!error) learn_rate(parts, Clock::now() - begin);
  const std::lock_guard lock(mutex_);
  ++stats_.steps;
  return !stopping_;
}

std::vector<Scheduler::Part> Scheduler::plan() {
  std::vector<Part> parts;
  wake_at_.reset();
  std::size_t room = options_.prefill_chunk;
  for (const auto& request : active_) {
    if (!ready(*request)) continue;
    const std::size_t missing = request->tokens.size() - request->computed;
    const bool decodes = request->computed >= request->prompt_tokens;
    std::size_t rows = decodes ? missing : std::min(missing, room);
    if (request->load != nullptr) rows = rows_beside_load(*request, rows);
    if (rows == 0) continue;
    if (!decodes) room -= rows;
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
    cache_.extend(request.table, end);
    for (std::size_t position = request.computed; position < end; ++position) {
      const bool scored =
          request.kind == Request::Kind::kScore && position + 1 < request.tokens.size();
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

/// Each request takes its rows, which follow each other, on one thread; requests side by side.
void Scheduler::hand_out(std::span<const LogitRow> owners, tensor::ConstMatrix logits) {
  logit_runs_.clear();
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (i == 0 || owners[i].request != owners[i - 1].request) logit_runs_.push_back(i);
  }
  logit_runs_.push_back(owners.size());
  std::vector<std::exception_ptr> errors(logit_runs_.size() - 1);
  transformer_.device().for_each_on_host(errors.size(), [&](std::size_t run) {
    errors[run] = base::caught([&] {
      for (std::size_t i = logit_runs_[run]; i < logit_runs_[run + 1]; ++i) {
        on_logits(*owners[i].request, owners[i].position, {logits.row(i), logits.columns});
      }
    });
  });
  for (std::size_t run = 0; run < errors.size(); ++run) {
    if (errors[run]) fail(*owners[logit_runs_[run]].request, std::move(errors[run]));
  }
}

void Scheduler::complete(std::span<const Part> parts) {
  for (const Part& part : parts) {
    Request& request = *part.request;
    if (request.closed) continue;
    const bool prefilling = request.computed < request.prompt_tokens;
    request.computed += part.rows;
    cache_.commit(request.table, std::span(request.tokens).first(request.computed));
    if (prefilling && request.params.on_prefill) {
      request.mailbox.post(ProgressEvent{request.computed, request.prompt_tokens});
    }
    if (part.samples) {
      add_token(request, request.tokens.back());
    } else if (request.computed == request.prompt_tokens) {
      finish(request, FinishReason::kMaxTokens);  // a score, or a prefill only
    }
  }
}

void Scheduler::on_logits(Request& request, std::size_t position, std::span<const float> logits) {
  if (request.closed) return;
  if (request.kind == Request::Kind::kScore) {
    const auto next = static_cast<std::size_t>(request.tokens[position + 1]);
    request.result.logprobs.push_back(
        static_cast<float>(static_cast<double>(logits[next]) - log_sum_exp(logits)));
  } else {
    sample(request, position, logits);
  }
}

void Scheduler::sample(Request& request, std::size_t position, std::span<const float> logits) {
  const GenerateParams& params = request.params;
  const auto allowed = request.take_allowed();
  TokenSampler::Limits limits;
  if (allowed) limits.allowed = *allowed;
  if (request.generated() < params.min_tokens && !params.ignore_eos) limits.banned = ends_;
  const TokenId token =
      request.sampler.choose(logits, static_cast<std::uint32_t>(position + 1), limits);
  if (params.logprobs > 0) {
    const double log_sum = log_sum_exp(logits);
    const auto logit = static_cast<double>(logits[static_cast<std::size_t>(token)]);
    request.result.logprobs.push_back(static_cast<float>(logit - log_sum));
    request.result.top.push_back(top_logprobs(logits, log_sum, params.logprobs));
  }
  request.tokens.push_back(token);
}

void Scheduler::note_first_token(Request& request) {
  request.result.time_to_first_token = since(request.begin);
  const std::lock_guard lock(mutex_);
  ++stats_.first_tokens;
  stats_.first_token_microseconds +=
      static_cast<std::uint64_t>(request.result.time_to_first_token.count());
  if (prefill_rate_ == 0) return;
  const double saved = static_cast<double>(request.result.reused_tokens) / prefill_rate_;
  stats_.saved_microseconds += static_cast<std::uint64_t>(saved * 1e6);
}

void Scheduler::add_token(Request& request, TokenId token) {
  const GenerateParams& params = request.params;
  if (request.generated() == 1) note_first_token(request);
  if (tokenizer_.is_end(token) && !params.ignore_eos) {
    request.tokens.pop_back();
    if (params.logprobs > 0) {
      request.result.logprobs.pop_back();
      request.result.top.pop_back();
    }
    return finish(request, FinishReason::kEnd);
  }
  {
    const std::lock_guard lock(mutex_);
    ++stats_.new_tokens;
  }
  request.sampler.accept(token);
  std::string piece = request.decoder.push(tokenizer_.bytes_of(token));
  if (request.generated() > params.min_tokens) piece = request.stops.push(piece);
  post_text(request, std::move(piece));
  if (request.stops.matched()) return finish(request, FinishReason::kStopString);
  if (request.generated() >= params.max_tokens) return finish(request, FinishReason::kMaxTokens);
  if (request.tokens.size() >= options_.context) {
    return finish(request, FinishReason::kContextFull);
  }
  if (params.allowed_tokens) request.mailbox.post(TokenEvent{token});
}

void Scheduler::post_text(Request& request, std::string piece) {
  if (piece.empty()) return;
  request.result.text += piece;
  if (request.params.on_text) {
    request.mailbox.post(TextEvent{std::move(piece), request.generated()});
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
