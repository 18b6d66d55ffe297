// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_SAMPLING_RUN_H_
#define INCIPIT_SAMPLER_SAMPLING_RUN_H_

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "incipit/self_consistency.h"
#include "sampler/tally.h"

namespace incipit::sampler {

/// A sample that runs somewhere else: what the sampler sees of a Generation.
class RunningSample {
 public:
  virtual ~RunningSample() = default;
  /// Runs the callbacks that are due, without waiting. True once the sample has ended.
  virtual bool poll() = 0;
  /// Waits until something happens to it.
  virtual void wait_a_while() = 0;
  /// Waits for the end, and gives the result or throws what it failed with. Called once.
  virtual GenerateResult finish() = 0;
  /// It is not needed any more; finish() gives what there is by then.
  virtual void cancel() noexcept = 0;
};

/// Begins a sample.
using SubmitSample = base::FunctionRef<std::unique_ptr<RunningSample>(GenerateParams params)>;

/// One call of the sampler. Samples run in any order and end in any order; what they say is counted
/// in the order of their numbers, and only the counted ones decide anything: how many are begun,
/// when to stop, and which error the caller sees.
class SamplingRun {
 public:
  /// Options and params have been checked. All arguments must outlive the run.
  SamplingRun(const SelfConsistencyOptions& options, const GenerateParams& params,
              SubmitSample submit, const SampleEventCallback& on_event);
  ~SamplingRun();
  SamplingRun(const SamplingRun&) = delete;
  SamplingRun& operator=(const SamplingRun&) = delete;

  /// Call it once.
  SelfConsistencyResult run();

 private:
  using Clock = std::chrono::steady_clock;
  struct Slot {
    std::unique_ptr<RunningSample> running;  // null: it has ended, or could not be begun
    Sample sample;
    std::int64_t mean_logprob = 0;  // in kLogprobUnit
    std::exception_ptr error;
  };

  void take_news();
  std::size_t target() const;
  void submit_up_to(std::size_t count);
  GenerateParams params_of(std::size_t i);
  bool poll_all();
  void end_sample(std::size_t i);
  void read_answer(Slot& slot) const;
  void count_ended();
  void count(std::size_t i);
  void emit(SampleEvent event);
  void stop(SamplingEnd end);
  void collect_cancelled() noexcept;
  void cancel_all() noexcept;
  void choose_answer();
  void add_usage();

  const SelfConsistencyOptions& options_;
  const GenerateParams& params_;
  const SubmitSample submit_;
  const SampleEventCallback& on_event_;
  const Clock::time_point begin_ = Clock::now();

  std::vector<Slot> slots_;  // of the samples that were begun
  Tally tally_;
  std::vector<Vote> shown_tally_;      // of tally_, for events
  std::size_t counted_ = 0;            // samples 0 to counted_ - 1 are in tally_
  std::optional<SamplingEnd> ended_;   // no more are counted
  std::exception_ptr callback_error_;  // of on_event_, from within a sample's callback
  SelfConsistencyResult result_;
};

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_SAMPLING_RUN_H_
