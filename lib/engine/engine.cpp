// SPDX-License-Identifier: Apache-2.0
#include "incipit/engine.h"

#include <unistd.h>

#include <utility>

#include "base/machine.h"
#include "engine/engine_impl.h"

namespace incipit::inline v0 {

namespace {

using engine::Clock;
using Kind = engine::Request::Kind;

}  // namespace

Engine::Engine(EngineOptions options, std::shared_ptr<PrefixCache> cache) {
  const base::ScopedFloatEnvironment float_environment;
  impl_ = std::make_unique<Impl>(options, std::move(cache));
}

Engine::~Engine() {
  // The threads of the parent do not exist in a child of fork(): there is nothing to join.
  if (impl_ && getpid() != impl_->process()) static_cast<void>(impl_.release());
}

GenerateResult Engine::generate_with_cache(std::string_view static_text,
                                           std::string_view dynamic_prompt,
                                           const GenerateParams& params) {
  const auto called = Clock::now();
  impl_->check_process();
  return impl_->run(Kind::kGenerate, impl_->prompt_encoder().encode(static_text, dynamic_prompt),
                    Impl::Reuse::kYes, params, called);
}

GenerateResult Engine::generate_with_cache(std::span<const Message> conversation,
                                           const GenerateParams& params) {
  const auto called = Clock::now();
  return impl_->run_chat(conversation, Impl::Reuse::kYes, params, called);
}

GenerateResult Engine::generate_with_cache(std::span<const TokenId> prompt,
                                           const GenerateParams& params) {
  const auto called = Clock::now();
  impl_->check_process();
  return impl_->run(Kind::kGenerate, {prompt.begin(), prompt.end()}, Impl::Reuse::kYes, params,
                    called);
}

GenerateResult Engine::generate(std::string_view prompt, const GenerateParams& params) {
  const auto called = Clock::now();
  return impl_->run(Kind::kGenerate, tokenize(prompt), Impl::Reuse::kNo, params, called);
}

GenerateResult Engine::generate(std::span<const Message> conversation,
                                const GenerateParams& params) {
  const auto called = Clock::now();
  return impl_->run_chat(conversation, Impl::Reuse::kNo, params, called);
}

GenerateResult Engine::generate(std::span<const TokenId> prompt, const GenerateParams& params) {
  const auto called = Clock::now();
  impl_->check_process();
  return impl_->run(Kind::kGenerate, {prompt.begin(), prompt.end()}, Impl::Reuse::kNo, params,
                    called);
}

std::vector<TokenId> Engine::tokenize(std::string_view text) const {
  impl_->check_process();
  return impl_->tokenizer().encode(text);
}

std::vector<TokenId> Engine::tokenize(std::span<const Message> conversation,
                                      const ChatOptions& options) const {
  impl_->check_process();
  return impl_->tokenizer().encode(impl_->chat_format().render(conversation, options));
}

std::vector<TokenId> Engine::tokenize(std::string_view static_text,
                                      std::string_view dynamic_prompt) {
  impl_->check_process();
  return impl_->prompt_encoder().encode(static_text, dynamic_prompt);
}

std::string Engine::detokenize(std::span<const TokenId> ids) const {
  impl_->check_process();
  return impl_->tokenizer().decode(ids);
}

std::string Engine::render(std::span<const Message> conversation,
                           const ChatOptions& options) const {
  impl_->check_process();
  return text::join(impl_->chat_format().render(conversation, options));
}

std::vector<float> Engine::score(std::span<const TokenId> ids) {
  const auto called = Clock::now();
  impl_->check_process();
  GenerateResult result =
      impl_->run(Kind::kScore, {ids.begin(), ids.end()}, Impl::Reuse::kNo, {}, called);
  result.logprobs.insert(result.logprobs.begin(), 0.0f);
  return std::move(result.logprobs);
}

GenerateParams Engine::recommended_params() const {
  const SamplingDefaults& found = impl_->info().sampling;
  GenerateParams params;
  params.temperature = found.temperature.value_or(params.temperature);
  params.top_k = found.top_k.value_or(params.top_k);
  params.top_p = found.top_p.value_or(params.top_p);
  params.min_p = found.min_p.value_or(params.min_p);
  params.repetition_penalty = found.repetition_penalty.value_or(params.repetition_penalty);
  params.stop_strings = found.stop_strings;
  return params;
}

PrefixCache& Engine::cache() noexcept { return impl_->cache(); }

EngineStats Engine::stats() const { return impl_->stats(); }

const ModelInfo& Engine::model() const noexcept { return impl_->info(); }

}  // namespace incipit::inline v0
