// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_CACHE_COSTS_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_CACHE_COSTS_H_

#include <incipit/engine.h>

#include <cstddef>
#include <filesystem>

namespace bench {

/// What the prefix cache takes, against what it saves. Medians.
struct CacheCosts {
  double lookup_8000_tokens_us = 0;  // found, pinned and released
  double insert_8000_tokens_us = 0;  // in a full index: as many blocks are evicted
  std::size_t blocks_indexed = 0;    // during both
  double restore_4096_warm_ms = 0;   // from a folder in the page cache into the pool
  double restore_4096_disk_ms = 0;   // the same, the page cache told to forget the folder
  double restored_bytes = 0;
  double prefill_4096_ms = 0;    // to the first token, nothing cached
  double bookkeeping_share = 0;  // of that: look-up and insertion of its blocks
  double throttled_ratio = 0;    // the same behind a tier that gives 5 MB/s, against without it
  // What a tier that never answers, with a deadline of 250 ms, adds to the first token of a short
  // prompt: of the first request, and of the next.
  double silent_first_ms = 0, silent_later_ms = 0;
};

/// `folder` must not exist; it is removed again.
CacheCosts measure_cache_costs(const incipit::EngineOptions& options, std::size_t repeat,
                               const std::filesystem::path& folder);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_CACHE_COSTS_H_
