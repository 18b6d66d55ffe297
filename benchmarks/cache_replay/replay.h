// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_CACHE_REPLAY_REPLAY_H_
#define INCIPIT_BENCHMARKS_CACHE_REPLAY_REPLAY_H_

#include <incipit/prefix_cache.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trace.h"

namespace bench {

/// What a trace did to a cache of one size under one policy.
struct ReplayResult {
  std::string policy = {};
  std::size_t blocks = 0;       // capacity
  std::size_t requests = 0;     // of the trace
  std::size_t too_large = 0;    // of them: longer than the capacity, so not run, and not found
  std::uint64_t tokens = 0;     // of all prompts
  std::uint64_t reused = 0;     // of them
  double work = 0.0;            // of all prompts, in that of a prompt's first token
  double work_saved = 0.0;      // of it
  std::uint64_t looked_up = 0;  // blocks of prompts, up to the first that was not found
  std::uint64_t inserted = 0;   // blocks
  std::uint64_t evicted = 0;    // blocks
  std::uint64_t copied = 0;     // blocks of which a front was reused
  double seconds = 0.0;         // of CPU time, in calls of the cache
  std::size_t peak_bytes = 0;   // of all but the KV

  std::uint64_t operations() const { return looked_up + inserted + evicted; }
  /// Blocks that came into the pool, were copied in it, or went, as they would to a lower tier.
  std::uint64_t blocks_moved() const { return inserted + copied + evicted; }
  double hit_ratio() const { return per(static_cast<double>(reused), tokens); }
  double work_ratio() const { return work > 0.0 ? work_saved / work : 0.0; }
  double ns_per_operation() const { return per(1e9 * seconds, operations()); }

 private:
  static double per(double sum, std::uint64_t count) {
    return count == 0 ? 0.0 : sum / static_cast<double>(count);
  }
};

/// The policies by their names on the command line.
struct NamedPolicy {
  const char* name;
  incipit::Eviction policy;
};
inline constexpr NamedPolicy kPolicies[] = {{"lru", incipit::Eviction::kLru},
                                            {"s3fifo", incipit::Eviction::kS3Fifo},
                                            {"arc", incipit::Eviction::kArc},
                                            {"gdsf", incipit::Eviction::kGdsf}};

/// Runs the requests one after the other through a kv::KvCache whose blocks hold nothing.
ReplayResult replay(const std::vector<Request>& requests, const NamedPolicy& policy,
                    std::size_t blocks);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_CACHE_REPLAY_REPLAY_H_
