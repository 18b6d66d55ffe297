// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_REQUESTS_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_REQUESTS_H_

#include <incipit/engine.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace bench {

/// Requests that ran at the same time.
struct Batch {
  double seconds = 0.0;  // from the first call to the last return
  std::vector<incipit::GenerateResult> results = {};

  /// Until each of them had its first token.
  double first_token_seconds() const;
};

/// Appends `count` ids that look random; another salt gives others from the first one on.
void append_ids(const incipit::Engine& engine, std::size_t count, std::size_t salt,
                std::vector<incipit::TokenId>& ids);

/// Calls `request(i, params)` for each i < count, all at once, on a thread each. `params` ask for
/// exactly `new_tokens`: greedily where there is one request, else as users sample. Throws what one
/// of the requests throws, after all have returned, and where a text is shorter than asked.
Batch run_at_once(
    std::size_t count, std::size_t new_tokens,
    const std::function<incipit::GenerateResult(std::size_t, const incipit::GenerateParams&)>&
        request);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_REQUESTS_H_
