// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CAPACITY_H_
#define INCIPIT_CAPACITY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "incipit/export.h"

namespace incipit::inline v0 {

/// A place for KV behind the pool: a directory, a server.
struct TierCapacity {
  std::string name = {};          ///< For the reader of the plan.
  std::uint64_t bytes = 0;        ///< That it may hold.
  double bytes_per_second = 0.0;  ///< That one prompt reads; 0: not known.
  double latency_seconds = 0.0;   ///< Until the first byte.
};

/// What plan_capacity() is asked.
struct CapacityQuestion {
  std::size_t tokens = 0;                  ///< Of a prefix.
  std::size_t kv_bytes_per_token = 0;      ///< ModelInfo::kv_bytes_per_token.
  std::uint64_t pool_bytes = 0;            ///< EngineOptions::kv_pool_bytes.
  double prefill_tokens_per_second = 0.0;  ///< For prompts of about this length; 0: not known.
  std::vector<TierCapacity> tiers = {};    ///< Where prefixes may lie besides.
};

/// A TierCapacity's part of the answer.
struct TierPlan {
  std::string name = {};                    ///< TierCapacity::name.
  std::uint64_t prefixes = 0;               ///< Different ones that fit.
  std::optional<double> load_seconds = {};  ///< Of one prefix.
  /// Tokens, in whole blocks, from which on loading is sooner than computing; none where it never
  /// is, or where a speed is not known.
  std::optional<std::size_t> break_even_tokens = {};
};

/// What a prefix takes, where it fits, and whether it is worth loading.
struct CapacityPlan {
  std::size_t blocks = 0;                      ///< Of 16 tokens; the last one may be part full.
  std::uint64_t bytes = 0;                     ///< Of those blocks.
  std::uint64_t prefixes_in_pool = 0;          ///< Different ones that fit.
  std::optional<double> compute_seconds = {};  ///< Of the prefix, with nothing cached.
  std::vector<TierPlan> tiers = {};            ///< As in the question.
};

/// Says what the KV of a prefix takes, how many such prefixes fit where, and from which length on a
/// tier is faster than computing. examples/capacity.cpp measures the speeds.
///
/// Counts KV alone: the index and the heads of stored entries add less than 1 %, what running
/// requests need comes on top. Prefixes that begin alike share blocks, so that more of them fit.
/// Times are linear in the length; long prompts take longer to compute than that.
///
/// Pure and thread-safe. Cost: O(tiers). Throws Error{kInvalidArgument} where kv_bytes_per_token is
/// 0, a speed or a latency is negative or not finite, or the bytes do not fit 64 bits.
INCIPIT_API CapacityPlan plan_capacity(const CapacityQuestion& question);

}  // namespace incipit::inline v0

#endif  // INCIPIT_CAPACITY_H_
