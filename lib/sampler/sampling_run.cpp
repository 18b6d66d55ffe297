// SPDX-License-Identifier: Apache-2.0
#include "sampler/sampling_run.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "sampler/options.h"
#include "sampler/stop_rule.h"
#include "sampler/weight.h"

namespace incipit::sampler {

SamplingRun::SamplingRun(const SelfConsistencyOptions& options, const GenerateParams& params,
                         SubmitSample submit, const SampleEventCallback& on_event)
    : options_(options), params_(params), submit_(submit), on_event_(on_event) {
  slots_.reserve(options.samples);  // callbacks refer to places in it
}

/// Asks all of them to end before the first is waited for.
SamplingRun::~SamplingRun() { cancel_all(); }

SelfConsistencyResult SamplingRun::run() {
  while (!ended_) {
    submit_up_to(target());
    // Nothing else need be begun until another sample is counted.
    for (const std::size_t counted = counted_; !ended_ && counted_ == counted;) take_news();
  }
  cancel_all();
  SampleEvent event;
  event.kind = SampleEvent::Kind::kStopped;
  emit(std::move(event));
  if (callback_error_) std::rethrow_exception(callback_error_);
  collect_cancelled();
  choose_answer();
  add_usage();
  return std::move(result_);
}

/// Sees what the samples have to tell, and waits where that is nothing.
void SamplingRun::take_news() {
  const bool news = poll_all();
  if (callback_error_) std::rethrow_exception(callback_error_);
  const std::size_t counted = counted_;
  if (!ended_) count_ended();
  if (callback_error_) std::rethrow_exception(callback_error_);
  if (ended_ || news || counted_ > counted) return;
  // Nothing can be decided without this one. The others report when it does.
  slots_[counted_].running->wait_a_while();
  if (callback_error_) std::rethrow_exception(callback_error_);
}

/// How many samples should have been begun by now: a function of those that are counted.
std::size_t SamplingRun::target() const {
  const Standing standing = tally_.standing();
  const std::size_t remaining = options_.samples - counted_;
  std::size_t needed = votes_needed(options_.stop, standing, remaining);
  if (counted_ < options_.min_samples) {
    needed = std::max(needed, std::min(options_.min_samples - counted_, remaining));
  }
  std::size_t wave = options_.wave;
  if (counted_ == 0) {
    wave = options_.first_wave > 0 ? options_.first_wave : needed;
  } else if (wave == 0) {
    wave = wave_size(needed, standing, remaining, options_.row_cost);
  }
  return counted_ + std::clamp<std::size_t>(wave, 1, remaining);
}

/// Behind one that could not be begun none will ever count.
void SamplingRun::submit_up_to(std::size_t count) {
  while (slots_.size() < count && !ended_ && (slots_.empty() || !slots_.back().error)) {
    if (params_.stop.stop_requested()) return stop(SamplingEnd::kStopped);
    const std::size_t i = slots_.size();
    GenerateParams params = params_of(i);
    if (params.timeout && *params.timeout <= std::chrono::milliseconds(0)) {
      return stop(SamplingEnd::kTimeout);
    }
    Slot& slot = slots_.emplace_back();
    try {
      slot.running = submit_(std::move(params));
    } catch (...) {
      slot.error = std::current_exception();
    }
  }
}

GenerateParams SamplingRun::params_of(std::size_t i) {
  GenerateParams params = params_of_sample(options_, params_, i);
  if (i == 0) params.on_prefill = params_.on_prefill;
  if (params.timeout) {
    params.timeout = *params.timeout -
                     std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_);
  }
  if (on_event_) {
    params.on_text = [this, i](std::string_view piece) {
      // A cancelled sample: its text is nobody's business, but the waste is counted in full.
      if (ended_ || callback_error_) return true;
      SampleEvent event;
      event.kind = SampleEvent::Kind::kText;
      event.sample = i;
      event.text = piece;
      emit(std::move(event));
      return !ended_ && !callback_error_;
    };
  }
  return params;
}

/// True where a sample has ended.
bool SamplingRun::poll_all() {
  bool news = false;
  for (std::size_t i = counted_; i < slots_.size() && !ended_ && !callback_error_; ++i) {
    if (!slots_[i].running || !slots_[i].running->poll()) continue;
    if (ended_ || callback_error_) break;  // by its own callback: it is a part at best
    end_sample(i);
    news = true;
  }
  return news;
}

void SamplingRun::end_sample(std::size_t i) {
  Slot& slot = slots_[i];
  const auto running = std::move(slot.running);
  try {
    slot.sample.result = running->finish();
  } catch (...) {
    slot.error = std::current_exception();
    return;
  }
  if (params_.logprobs == 0) slot.sample.result.top.clear();  // nobody has asked for them
  const FinishReason finish = slot.sample.result.finish;
  if (finish == FinishReason::kStopped || finish == FinishReason::kTimeout) return;
  read_answer(slot);
  SampleEvent event;
  event.kind = SampleEvent::Kind::kSampleDone;
  event.sample = i;
  event.done = &slot.sample;
  emit(std::move(event));
}

void SamplingRun::read_answer(Slot& slot) const {
  Sample& sample = slot.sample;
  const std::vector<float>& logprobs = sample.result.logprobs;
  slot.mean_logprob = mean_logprob_units(logprobs);
  sample.mean_logprob = static_cast<double>(slot.mean_logprob) / static_cast<double>(kLogprobUnit);
  sample.weight =
      static_cast<double>(vote_weight(options_, logprobs)) / static_cast<double>(kFullWeight);
  sample.answer = options_.extract(sample.result.text);
  if (sample.answer) sample.key = options_.key(*sample.answer);
  sample.status = sample.key ? SampleStatus::kVoted : SampleStatus::kNoAnswer;
}

/// Counts what has ended, in order, up to the first that has not.
void SamplingRun::count_ended() {
  while (!ended_ && counted_ < slots_.size() && !slots_[counted_].running) {
    // Also where the samples had all ended by then.
    if (params_.stop.stop_requested()) return stop(SamplingEnd::kStopped);
    Slot& slot = slots_[counted_];
    if (slot.error) std::rethrow_exception(slot.error);
    const FinishReason finish = slot.sample.result.finish;
    if (finish == FinishReason::kStopped) return stop(SamplingEnd::kStopped);
    if (finish == FinishReason::kTimeout) return stop(SamplingEnd::kTimeout);
    count(counted_);
  }
}

void SamplingRun::count(std::size_t i) {
  Sample& sample = slots_[i].sample;
  ++counted_;
  if (options_.score) sample.score = options_.score(sample);
  if (sample.key) {
    tally_.add(*sample.key, *sample.answer, i, vote_weight(options_, sample.result.logprobs),
               slots_[i].mean_logprob);
    if (on_event_) shown_tally_ = tally_.sorted();
    SampleEvent event;
    event.kind = SampleEvent::Kind::kVoteChanged;
    event.sample = i;
    event.done = &sample;
    emit(std::move(event));
    if (ended_ || callback_error_) return;
  }
  const std::size_t remaining = options_.samples - counted_;
  if (counted_ >= std::min(options_.min_samples, options_.samples) &&
      may_stop(options_.stop, tally_.standing(), remaining)) {
    stop(SamplingEnd::kRule);
  } else if (remaining == 0) {
    stop(SamplingEnd::kAllTaken);
  }
}

/// An exception is kept until the sample whose callback this may be is done with.
void SamplingRun::emit(SampleEvent event) {
  if (!on_event_) return;
  event.tally = shown_tally_;
  event.counted = counted_;
  try {
    if (!on_event_(event) && !ended_) stop(SamplingEnd::kStopped);
  } catch (...) {
    callback_error_ = std::current_exception();
  }
}

void SamplingRun::stop(SamplingEnd end) { ended_ = end; }

void SamplingRun::cancel_all() noexcept {
  for (Slot& slot : slots_) {
    if (slot.running) slot.running->cancel();
  }
}

/// Takes what the samples that nobody waited for have made. How they ended does not matter.
void SamplingRun::collect_cancelled() noexcept {
  for (std::size_t i = counted_; i < slots_.size(); ++i) {
    Slot& slot = slots_[i];
    slot.sample.status = SampleStatus::kCancelled;
    if (!slot.running) continue;
    try {
      slot.sample.result = slot.running->finish();
      if (params_.logprobs == 0) slot.sample.result.top.clear();
    } catch (...) {
      slot.sample.result = {};
    }
    slot.running.reset();
  }
}

void SamplingRun::choose_answer() {
  result_.tally = tally_.sorted();
  result_.winner = tally_.leader();
  if (options_.score) {
    result_.winner.reset();
    for (std::size_t i = 0; i < counted_; ++i) {
      const double score = slots_[i].sample.score;
      if (!(score == score)) continue;  // a NaN is no score
      if (!result_.winner || score > slots_[*result_.winner].sample.score) result_.winner = i;
    }
  }
  if (result_.winner) {
    const Sample& winner = slots_[*result_.winner].sample;
    result_.answer = winner.answer ? *winner.answer : winner.result.text;
  }
  result_.stopped_after = counted_;
  result_.end = *ended_;
}

void SamplingRun::add_usage() {
  SamplingUsage& usage = result_.usage;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const GenerateResult& result = slots_[i].sample.result;
    (i < counted_ ? usage.decoded_tokens : usage.cancelled_tokens) += result.token_ids.size();
    // One that was cancelled before its first token may not have computed its prompt.
    if (i < counted_ || !result.token_ids.empty()) {
      usage.shared_tokens += result.reused_tokens;
      usage.prefilled_tokens += result.prompt_ids.size() - result.reused_tokens;
    }
    result_.samples.push_back(std::move(slots_[i].sample));
  }
  usage.time = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin_);
}

}  // namespace incipit::sampler
