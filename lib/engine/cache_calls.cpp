// SPDX-License-Identifier: Apache-2.0
// What an Engine does for its cache where text and a forward pass are needed.
#include <algorithm>
#include <utility>

#include "engine/engine_impl.h"
#include "engine/same_logprobs.h"
#include "incipit/cache_reports.h"

namespace incipit::inline v0 {
namespace {

using Kind = engine::Request::Kind;

constexpr std::size_t kBlock = device::kBlockTokens;

MissReason reason_of(kv::Gone why) {
  switch (why) {
    case kv::Gone::kNever:
      return MissReason::kNeverStored;
    case kv::Gone::kEvicted:
      return MissReason::kEvicted;
    case kv::Gone::kExpired:
      return MissReason::kExpired;
    case kv::Gone::kInvalidated:
      return MissReason::kInvalidated;
  }
  return MissReason::kNeverStored;
}

// Why another namespace has what this one has not.
MissReason reason_of(const kv::PathNames& elsewhere, const CacheLabels& labels) {
  if (elsewhere.salt != labels.salt) return MissReason::kOtherSalt;
  if (elsewhere.version != labels.version) return MissReason::kOtherVersion;
  return MissReason::kOtherModel;
}

}  // namespace

std::string_view to_string(MissReason reason) noexcept {
  switch (reason) {
    case MissReason::kNothingMissing:
      return "nothing_missing";
    case MissReason::kNeverStored:
      return "never_stored";
    case MissReason::kEvicted:
      return "evicted";
    case MissReason::kExpired:
      return "expired";
    case MissReason::kInvalidated:
      return "invalidated";
    case MissReason::kOtherSalt:
      return "other_salt";
    case MissReason::kOtherVersion:
      return "other_version";
    case MissReason::kOtherModel:
      return "other_model";
  }
  return "unknown";
}

/// Runs the prompt with and without the cache, for all logits behind it. Of `params` counts with
/// whom KV is shared, and when to stop; what was stopped is not compared.
CacheValidation Engine::Impl::validate(const std::vector<TokenId>& prompt, GenerateParams params) {
  check_prompt(Kind::kGenerate, prompt);
  params.max_tokens = 1;
  params.logprobs = info_.vocabulary;
  params.ignore_eos = true;
  const GenerateResult cached =
      run_once(Kind::kGenerate, prompt, Reuse::kYes, params, engine::Clock::now());
  CacheValidation validation{prompt.size(), cached.reused_tokens, true};
  if (cached.reused_tokens == 0 || cached.top.empty()) return validation;
  const GenerateResult direct =
      run_once(Kind::kGenerate, prompt, Reuse::kNo, params, engine::Clock::now());
  if (direct.top.empty()) return {prompt.size(), 0, true};
  validation.equal = device_->info().exact
                         ? engine::same_bits(cached.top.front(), direct.top.front())
                         : engine::about_equal(cached.top.front(), direct.top.front());
  registry().count_validation(validation.equal);
  if (!validation.equal) {
    log_.error(
        "a reused prefix gave other logits than a direct forward pass; forgetting all of "
        "its namespace");
    static_cast<void>(registry().invalidate_name_space(name_space(params.cache)));
  }
  return validation;
}

/// The same ahead of a request, which it must not cost more than time.
void Engine::Impl::validate_before(const std::vector<TokenId>& prompt, const GenerateParams& params,
                                   engine::Clock::time_point called) {
  GenerateParams own;
  own.cache = params.cache;
  own.stop = params.stop;
  if (params.timeout) {
    own.timeout = std::max(std::chrono::milliseconds(0),
                           std::chrono::duration_cast<std::chrono::milliseconds>(
                               called + *params.timeout - engine::Clock::now()));
  }
  try {
    validate(prompt, own);
  } catch (const Error& error) {  // it needs room for one more token than the request may
    if (error.code() != ErrorCode::kOutOfMemory) throw;
  }
}

MissExplanation Engine::Impl::explain_miss(const std::vector<TokenId>& prompt,
                                           const CacheLabels& labels) {
  const std::string space = name_space(labels);
  // First, since it applies what other processes have forgotten.
  const auto ticket = registry().begin_request(space, registry().cache_labels(labels));
  const kv::MissReport report = kv_->explain_miss(space, prompt);
  MissExplanation explanation;
  explanation.prompt_tokens = prompt.size();
  explanation.known_tokens = report.known_tokens;
  if (ticket != nullptr) {
    const kv::ColdTiers::Stored stored = registry().tiers()->find(*ticket, prompt);
    explanation.stored_tokens = stored.blocks * kBlock;
    explanation.stored_in = stored.tier;
  }
  const std::size_t have = std::max(explanation.known_tokens, explanation.stored_tokens);
  if (report.whole || have / kBlock >= prompt.size() / kBlock) return explanation;
  // Why the pool has not what a tier has says nothing of what both have not.
  const bool in_tier = explanation.stored_tokens > explanation.known_tokens;
  explanation.reason = in_tier ? MissReason::kNeverStored : reason_of(report.why);
  if (have == 0) {
    const kv::PathNames elsewhere = registry().find_elsewhere(space, prompt);
    if (!elsewhere.tokens.empty()) explanation.reason = reason_of(elsewhere, labels);
  }
  explanation.missing_token = prompt[have];
  explanation.missing_text = tokenizer_.decode(std::span(prompt).subspan(have, 1));
  if (have == report.known_tokens && have % kBlock < report.sibling.size()) {
    explanation.expected_text =
        tokenizer_.decode(std::span(report.sibling).subspan(have % kBlock, 1));
  }
  return explanation;
}

GenerateResult Engine::prefetch(std::string_view static_text, const CacheLabels& labels) {
  GenerateParams params;
  params.max_tokens = 0;
  params.cache = labels;
  return generate_with_cache(static_text, {}, params);
}

CacheValidation Engine::validate(std::string_view static_text, const CacheLabels& labels) {
  impl_->check_process();
  GenerateParams params;
  params.cache = labels;
  return impl_->validate(impl_->prompt_encoder().encode(static_text, {}), params);
}

std::size_t Engine::pin(std::string_view static_text, std::chrono::seconds duration,
                        const CacheLabels& labels) {
  impl_->check_process();
  return impl_->pin(impl_->prompt_encoder().encode(static_text, {}), duration, labels);
}

MissExplanation Engine::explain_miss(std::string_view static_text, const CacheLabels& labels) {
  impl_->check_process();
  return impl_->explain_miss(impl_->prompt_encoder().encode(static_text, {}), labels);
}

CacheEvents Engine::cache_events(std::uint64_t from, std::size_t limit) const {
  impl_->check_process();
  return impl_->pool().events(from, limit);
}

CacheEvents Engine::cache_snapshot() const {
  impl_->check_process();
  return impl_->pool().snapshot();
}

Invalidation Engine::invalidate_prefix(std::string_view static_text, const CacheLabels& labels) {
  impl_->check_process();
  // What stands at the end of the text may become other tokens in front of more text.
  return impl_->invalidate_prefix(impl_->tokenizer().encode_stable(static_text).ids, labels);
}

Invalidation Engine::invalidate_namespace(const CacheLabels& labels) {
  impl_->check_process();
  return impl_->invalidate_prefix({}, labels);
}

std::size_t Engine::Impl::pin(const std::vector<TokenId>& prompt, std::chrono::seconds duration,
                              const CacheLabels& labels) {
  // Beyond this the clock would overflow; nobody waits so long.
  constexpr std::chrono::seconds kLongest = std::chrono::hours(24 * 366 * 100);
  return kv_->pin(name_space(labels), prompt,
                  engine::Clock::now() + std::clamp(duration, std::chrono::seconds(0), kLongest));
}

Invalidation Engine::Impl::invalidate_prefix(std::span<const TokenId> tokens,
                                             const CacheLabels& labels) {
  const std::string space = name_space(labels);
  return tokens.empty() ? registry().invalidate_name_space(space)
                        : registry().invalidate_prefix(space, tokens);
}

}  // namespace incipit::inline v0
