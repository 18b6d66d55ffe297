// SPDX-License-Identifier: Apache-2.0
#include "incipit/self_consistency.h"

#include <utility>

#include "base/check.h"
#include "sampler/options.h"
#include "sampler/sampling_run.h"

namespace incipit::inline v0 {
namespace {

/// A sample that an engine makes.
class EngineSample : public sampler::RunningSample {
 public:
  explicit EngineSample(Generation generation) : generation_(std::move(generation)) {}

  bool poll() override { return generation_.poll(); }
  void wait_a_while() override {
    try {
      generation_.next();  // the text goes to on_text
    } catch (...) {        // it has ended, and finish() throws the same
    }
  }
  GenerateResult finish() override { return generation_.wait(); }
  void cancel() noexcept override { generation_.cancel(); }

 private:
  Generation generation_;
};

}  // namespace

class __attribute__((visibility("hidden"))) SelfConsistencySampler::Impl {
 public:
  Impl(Engine& engine, SelfConsistencyOptions options)
      : engine_(engine), options_(std::move(options)) {
    sampler::check(options_);
    if (!options_.extract) options_.extract = extract::last_line();
    if (!options_.key) options_.key = keys::number_or_text();
  }

  Engine& engine() const noexcept { return engine_; }

  SelfConsistencyResult sample(std::span<const TokenId> prompt, const GenerateParams& params,
                               const SampleEventCallback& on_event) const {
    sampler::check(params);
    const auto submit = [&](GenerateParams own) -> std::unique_ptr<sampler::RunningSample> {
      return std::make_unique<EngineSample>(engine_.submit(prompt, std::move(own)));
    };
    return sampler::SamplingRun(options_, params, submit, on_event).run();
  }

 private:
  Engine& engine_;
  SelfConsistencyOptions options_;
};

SelfConsistencySampler::SelfConsistencySampler(Engine& engine, SelfConsistencyOptions options)
    : impl_(std::make_unique<Impl>(engine, std::move(options))) {}

SelfConsistencySampler::~SelfConsistencySampler() = default;

SelfConsistencyResult SelfConsistencySampler::sample(std::string_view static_text,
                                                     std::string_view dynamic_prompt,
                                                     const GenerateParams& params,
                                                     const SampleEventCallback& on_event) const {
  return impl_->sample(impl_->engine().tokenize(static_text, dynamic_prompt), params, on_event);
}

SelfConsistencyResult SelfConsistencySampler::sample(std::span<const Message> conversation,
                                                     const GenerateParams& params,
                                                     const SampleEventCallback& on_event) const {
  return impl_->sample(impl_->engine().tokenize(conversation), params, on_event);
}

SelfConsistencyResult SelfConsistencySampler::sample(std::span<const TokenId> prompt,
                                                     const GenerateParams& params,
                                                     const SampleEventCallback& on_event) const {
  return impl_->sample(prompt, params, on_event);
}

}  // namespace incipit::inline v0
