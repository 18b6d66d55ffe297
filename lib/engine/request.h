// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_REQUEST_H_
#define INCIPIT_ENGINE_REQUEST_H_

#include <atomic>
#include <chrono>
#include <cstddef>
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

/// One call of the engine on its way through the scheduler. The calling thread makes it, submits
/// it, and reads its mailbox until the ClosedEvent; in between the scheduler's thread owns all
/// members but those under "shared".
class Request {
 public:
  /// What is wanted of the prompt.
  enum class Kind {
    kGenerate,
    kScore,  // the log-probability of each prompt token; nothing is generated
  };

  Request(Kind request_kind, std::vector<TokenId> prompt, const GenerateParams& request_params,
          std::string name_space_string, CacheLabels cache_labels, std::size_t vocabulary,
          Clock::time_point called)
      : kind(request_kind),
        params(request_params),
        name_space(std::move(name_space_string)),
        labels(std::move(cache_labels)),
        begin(called),
        prompt_tokens(prompt.size()),
        tokens(std::move(prompt)),
        sampler(params, tokens, vocabulary),
        stops(params.stop_strings) {}

  const Kind kind;
  const GenerateParams& params;  // the caller's; lives as long as its call
  const std::string name_space;  // empty: neither reads nor fills the cache
  const CacheLabels labels;      // as the cache gets them
  const Clock::time_point begin;
  const std::size_t prompt_tokens;

  std::vector<TokenId> tokens;   // prompt, then what was generated
  std::size_t total_tokens = 0;  // that `tokens` may grow to
  std::size_t computed = 0;      // tokens whose KV is in the pool
  kv::BlockTable table;
  std::shared_ptr<const kv::TierTicket> ticket;  // none: nothing to do with cold tiers
  std::shared_ptr<kv::PrefixLoad> load;          // while KV arrives from them
  TokenSampler sampler;
  text::StreamDecoder decoder;
  StopStrings stops;
  GenerateResult result;
  bool closed = false;

  std::size_t generated() const noexcept { return tokens.size() - prompt_tokens; }

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
