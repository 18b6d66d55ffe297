// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_REQUEST_H_
#define INCIPIT_ENGINE_REQUEST_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/mailbox.h"
#include "engine/stop_strings.h"
#include "engine/token_sampler.h"
#include "incipit/sampling.h"
#include "kv/cold_tiers.h"
#include "kv/kv_cache.h"
#include "text/stream_decoder.h"

namespace incipit::engine {

using Clock = std::chrono::steady_clock;

inline std::chrono::microseconds since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

/// One call of the engine on its way through the scheduler. A thread makes it, submits it, and
/// reads its mailbox until the ClosedEvent (see Delivery); in between the scheduler's thread owns
/// all members but those under "shared".
class Request {
 public:
  /// What is wanted of the prompt.
  enum class Kind {
    kGenerate,
    kScore,  // the log-probability of each prompt token; nothing is generated
  };

  Request(Kind request_kind, std::vector<TokenId> prompt, GenerateParams request_params,
          std::string name_space_string, CacheLabels cache_labels, std::size_t vocabulary,
          Clock::time_point called)
      : kind(request_kind),
        params(std::move(request_params)),
        name_space(std::move(name_space_string)),
        labels(std::move(cache_labels)),
        begin(called),
        prompt_tokens(prompt.size()),
        tokens(std::move(prompt)),
        sampler(params, tokens, vocabulary),
        stops(params.stop_strings) {}

  const Kind kind;
  const GenerateParams params;
  const std::string name_space;  // empty: neither reads nor fills the cache
  const CacheLabels labels;      // as the cache gets them
  const Clock::time_point begin;
  const std::size_t prompt_tokens;

  std::uint64_t arrival = 0;                      // in order of submission
  bool streams = false;                           // its text is wanted piece by piece
  std::vector<TokenId> tokens;                    // prompt, then what was generated
  std::size_t total_tokens = 0;                   // that `tokens` may grow to
  std::size_t computed = 0;                       // tokens whose KV is in the pool
  bool noise_is_due = false;                      // params.kv_noise, not yet in its blocks
  std::size_t preemptions = 0;                    // how often it had to give its blocks back
  std::optional<Clock::time_point> paused_since;  // it waits for its caller
  kv::BlockTable table;
  std::shared_ptr<const kv::TierTicket> ticket;  // none: nothing to do with cold tiers
  std::shared_ptr<kv::PrefixLoad> load;          // while KV arrives from them
  TokenSampler sampler;
  text::StreamDecoder decoder;
  StopStrings stops;
  GenerateResult result;
  bool closed = false;

  std::size_t generated() const noexcept { return tokens.size() - prompt_tokens; }
  /// What the cache may know of it: tokens behind noisy KV have KV of their own.
  std::span<const TokenId> sought_tokens() const noexcept {
    return std::span(tokens).first(params.kv_noise > 0.0f ? prompt_tokens : tokens.size());
  }
  /// Whether all that was known when it was admitted is computed: it brings one row to a step.
  bool decodes() const noexcept {
    return computed >= prompt_tokens && computed + 1 == tokens.size();
  }
  std::optional<Clock::time_point> deadline() const {
    return params.timeout ? std::optional(begin + *params.timeout) : std::nullopt;
  }

  // Shared.
  Mailbox mailbox;
  // Why the caller wants it to end; set once, -1: not at all.
  std::atomic<int> cancelled{-1};
  void cancel(FinishReason reason) noexcept {
    int none = -1;
    cancelled.compare_exchange_strong(none, static_cast<int>(reason));
  }

  /// What may follow, as GenerateParams::allowed_tokens said; none while it has not yet.
  std::optional<std::vector<TokenId>> take_allowed() {
    const std::lock_guard lock(allowed_mutex_);
    return std::exchange(allowed_, std::nullopt);
  }
  bool has_allowed() const {
    const std::lock_guard lock(allowed_mutex_);
    return allowed_.has_value();
  }
  void set_allowed(std::vector<TokenId> allowed) {
    const std::lock_guard lock(allowed_mutex_);
    allowed_ = std::move(allowed);
  }

 private:
  mutable std::mutex allowed_mutex_;
  std::optional<std::vector<TokenId>> allowed_;  // guarded by allowed_mutex_
};

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_REQUEST_H_
