// SPDX-License-Identifier: Apache-2.0
// What the scheduler makes of logits.
#include <utility>

#include "base/caught.h"
#include "engine/exact_math.h"
#include "engine/scheduler.h"

namespace incipit::engine {

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

void Scheduler::on_logits(Request& request, std::size_t position, std::span<const float> logits) {
  if (request.closed) return;
  if (request.kind == Request::Kind::kScore) {
    const auto next = static_cast<std::size_t>(request.tokens[position + 1]);
    request.result.logprobs.push_back(static_cast<float>(static_cast<double>(logits[next]) -
                                                         request.sampler.log_sum_exp(logits)));
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
  if (params.logprobs > 0) note_logprobs(request, token, logits);
  request.tokens.push_back(token);
}

void Scheduler::note_logprobs(Request& request, TokenId token, std::span<const float> logits) {
  const GenerateParams& params = request.params;
  if (params.logprobs_of == LogprobsOf::kSampled) {
    TokenSampler::Drawn drawn = request.sampler.drawn(token, params.logprobs);
    request.result.logprobs.push_back(drawn.logprob);
    request.result.top.push_back(std::move(drawn.top));
    return;
  }
  const double log_sum = request.sampler.log_sum_exp(logits);
  const auto logit = static_cast<double>(logits[static_cast<std::size_t>(token)]);
  request.result.logprobs.push_back(static_cast<float>(logit - log_sum));
  request.result.top.push_back(top_logprobs(logits, log_sum, params.logprobs));
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
  if (request.streams) {
    request.mailbox.post(TextEvent{std::move(piece), request.generated()});
  }
}

}  // namespace incipit::engine
