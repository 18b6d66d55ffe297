// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_METRICS_H_
#define INCIPIT_METRICS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "incipit/export.h"

namespace incipit::inline v0 {

/// A snapshot of a cold tier.
struct TierStats {
  std::string name = {};            ///< Its store's.
  std::uint64_t bytes = 0;          ///< That the store holds, where it knows.
  std::uint64_t tokens_reused = 0;  ///< Prompt tokens whose KV came from it.
  std::uint64_t reads = 0;  ///< Calls for records, also those that were refused or known to miss.
  std::uint64_t read_hits = 0;           ///< Of them, those that found one.
  std::uint64_t read_bytes = 0;          ///< In those.
  std::uint64_t read_microseconds = 0;   ///< In the store, of all reads.
  std::uint64_t writes = 0;              ///< Calls to keep records.
  std::uint64_t written_bytes = 0;       ///< In those that it kept.
  std::uint64_t write_microseconds = 0;  ///< In the store, of all writes.
  std::uint64_t rejected = 0;            ///< Records that did not prove themselves.
  std::uint64_t failures = 0;            ///< Calls that it could not serve in time.
  bool open = false;                     ///< Nothing is asked of it for now, since it failed.
};

/// A snapshot of a PrefixCache, summed over the pools of the engines that use it.
struct CacheStats {
  std::uint64_t lookups = 0;          ///< Prompts that were looked up.
  std::uint64_t tokens_wanted = 0;    ///< Prompt tokens of those.
  std::uint64_t tokens_reused = 0;    ///< The part of them that was found, in pools and tiers.
  std::uint64_t evictions = 0;        ///< Blocks forgotten to make room.
  std::uint64_t blocks_total = 0;     ///< Size of the pools, in blocks of 16 tokens.
  std::uint64_t blocks_cached = 0;    ///< Blocks that a later prompt can find.
  std::uint64_t blocks_in_use = 0;    ///< Blocks that running requests hold.
  std::uint64_t bytes = 0;            ///< Memory of the pools.
  std::uint64_t invalidations = 0;    ///< Calls to forget something.
  std::uint64_t validations = 0;      ///< Hits that were computed again and compared.
  std::uint64_t mismatches = 0;       ///< Of them, those that differed.
  std::vector<TierStats> tiers = {};  ///< In the order of PrefixCacheOptions::tiers.

  /// Share of the wanted tokens that were found, 0 to 1.
  double hit_rate() const noexcept {
    return tokens_wanted == 0
               ? 0.0
               : static_cast<double>(tokens_reused) / static_cast<double>(tokens_wanted);
  }
};

/// A snapshot of an Engine since its construction.
struct EngineStats {
  std::uint64_t requests = 0;                  ///< Begun.
  std::uint64_t prompt_tokens = 0;             ///< Of all requests.
  std::uint64_t reused_tokens = 0;             ///< Prompt tokens whose KV was not recomputed.
  std::uint64_t loaded_tokens = 0;             ///< Of them, those that came from a cold tier.
  std::uint64_t new_tokens = 0;                ///< Generated tokens.
  std::uint64_t steps = 0;                     ///< Forward passes.
  std::uint64_t step_microseconds = 0;         ///< Of the steps, with all that belongs to them.
  std::uint64_t forward_microseconds = 0;      ///< Of that, computing and sampling.
  std::uint64_t preemptions = 0;               ///< Requests that had to give up their blocks.
  std::uint64_t first_tokens = 0;              ///< Requests that have got their first token.
  std::uint64_t first_token_microseconds = 0;  ///< Theirs, from the call to it, in all.
  std::uint64_t load_microseconds = 0;         ///< From looking into cold tiers to the end of it.
  std::uint64_t saved_microseconds = 0;        ///< That the reused tokens would have taken, about.
};

/// The counters as Prometheus' text format, one metric a line with help and type, named
/// incipit_cache_..., tiers by the labels `tier` (its index) and `store`. Serve them as they are.
INCIPIT_API std::string to_prometheus(const CacheStats& stats);
/// The same, named incipit_engine_...
INCIPIT_API std::string to_prometheus(const EngineStats& stats);

}  // namespace incipit::inline v0

#endif  // INCIPIT_METRICS_H_
