// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SAMPLER_SCRIPTED_SAMPLES_H_
#define INCIPIT_TESTS_SAMPLER_SCRIPTED_SAMPLES_H_

#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sampler/sampling_run.h"

namespace incipit::test {

/// What one sample does, by its number.
struct Script {
  std::string text = {};
  std::size_t steps =
      1;  // of the clock, from its start; a character of text each, the rest at last
  std::vector<float> logprobs = {-1.0f};
  std::exception_ptr error = {};         // at the end, instead of a result
  std::exception_ptr submit_error = {};  // instead of a start
};

/// An engine of nothing but a clock, which goes on by one with each wait: it makes no promise but
/// that of the interface. Samples end when their steps are over, in whatever order that is.
class ScriptedSamples {
 public:
  explicit ScriptedSamples(std::vector<Script> scripts) : scripts_(std::move(scripts)) {}

  std::unique_ptr<sampler::RunningSample> submit(GenerateParams params) {
    const std::size_t i = params.sample;
    ++submitted_;
    asked_.push_back(params);
    const Script& script = scripts_.at(i);
    if (script.submit_error) std::rethrow_exception(script.submit_error);
    ++running_;
    return std::make_unique<Running>(*this, script, std::move(params));
  }

  std::size_t submitted() const { return submitted_; }
  std::size_t running() const { return running_; }      // begun and not destroyed
  std::size_t cancelled() const { return cancelled_; }  // before their end
  bool all_cancelled_before_first_end() const { return in_order_; }
  std::size_t waits() const { return now_; }
  const std::vector<GenerateParams>& asked() const { return asked_; }

 private:
  class Running : public sampler::RunningSample {
   public:
    Running(ScriptedSamples& owner, const Script& script, GenerateParams params)
        : owner_(owner), script_(script), params_(std::move(params)), begin_(owner.now_) {}
    ~Running() override {
      if (!ended_ && !cancelled_) owner_.in_order_ = false;
      --owner_.running_;
    }

    bool poll() override {
      while (!ended_ && !cancelled_ && told_ < steps_made()) tell();
      return ended_ || cancelled_;
    }
    void wait_a_while() override {
      ++owner_.now_;
      poll();
    }
    GenerateResult finish() override {
      if (!poll()) owner_.in_order_ = false;  // nobody should wait for it that way
      if (!cancelled_ && script_.error) std::rethrow_exception(script_.error);
      GenerateResult result;
      result.prompt_ids = {1, 2, 3};
      result.reused_tokens = params_.sample == 0 ? 0 : 2;
      result.text = cancelled_ ? script_.text.substr(0, told_) : script_.text;
      result.token_ids.assign(told_, 7);
      result.logprobs = script_.logprobs;
      result.top.resize(told_);
      result.finish = finish_;
      return result;
    }
    void cancel() noexcept override {
      if (ended_ || cancelled_) return;
      cancelled_ = true;
      finish_ = FinishReason::kStopped;
      ++owner_.cancelled_;
    }

   private:
    std::size_t steps_made() const { return std::min(owner_.now_ - begin_, script_.steps); }
    void tell() {
      if (params_.stop.stop_requested()) return end(FinishReason::kStopped);
      ++told_;
      const bool last = told_ == script_.steps;
      const std::string piece = told_ > script_.text.size()
                                    ? ""
                                    : script_.text.substr(told_ - 1, last ? std::string::npos : 1);
      if (params_.on_text && !piece.empty() && !params_.on_text(piece)) {
        return end(FinishReason::kStopped);
      }
      if (last) end(FinishReason::kEnd);
    }
    void end(FinishReason reason) {
      ended_ = true;
      finish_ = reason;
    }

    ScriptedSamples& owner_;
    const Script& script_;
    const GenerateParams params_;
    const std::size_t begin_;
    std::size_t told_ = 0;
    bool ended_ = false, cancelled_ = false;
    FinishReason finish_ = FinishReason::kEnd;
  };

  std::vector<Script> scripts_;
  std::vector<GenerateParams> asked_;
  std::size_t now_ = 0, submitted_ = 0, running_ = 0, cancelled_ = 0;
  bool in_order_ = true;
};

}  // namespace incipit::test

#endif  // INCIPIT_TESTS_SAMPLER_SCRIPTED_SAMPLES_H_
