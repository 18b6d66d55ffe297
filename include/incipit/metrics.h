// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_METRICS_H_
#define INCIPIT_METRICS_H_

#include <cstdint>

namespace incipit::inline v0 {

/// A snapshot of a PrefixCache, summed over the pools of the engines that use it.
struct CacheStats {
  std::uint64_t lookups = 0;        ///< Prompts that were looked up.
  std::uint64_t tokens_wanted = 0;  ///< Prompt tokens of those.
  std::uint64_t tokens_reused = 0;  ///< The part of them that was found.
  std::uint64_t evictions = 0;      ///< Blocks forgotten to make room.
  std::uint64_t blocks_total = 0;   ///< Size of the pools, in blocks of 16 tokens.
  std::uint64_t blocks_cached = 0;  ///< Blocks that a later prompt can find.
  std::uint64_t blocks_in_use = 0;  ///< Blocks that running requests hold.
  std::uint64_t bytes = 0;          ///< Memory of the pools.

  /// Share of the wanted tokens that were found, 0 to 1.
  double hit_rate() const noexcept {
    return tokens_wanted == 0
               ? 0.0
               : static_cast<double>(tokens_reused) / static_cast<double>(tokens_wanted);
  }
};

/// A snapshot of an Engine since its construction.
struct EngineStats {
  std::uint64_t requests = 0;       ///< Begun.
  std::uint64_t prompt_tokens = 0;  ///< Of all requests.
  std::uint64_t reused_tokens = 0;  ///< Prompt tokens whose KV was not recomputed.
  std::uint64_t new_tokens = 0;     ///< Generated tokens.
  std::uint64_t steps = 0;          ///< Forward passes.
};

}  // namespace incipit::inline v0

#endif  // INCIPIT_METRICS_H_
