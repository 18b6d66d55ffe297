// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_WORKLOADS_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_WORKLOADS_H_

#include <incipit/engine.h>

#include <cstddef>
#include <vector>

#include "metric.h"
#include "yardstick.h"

namespace bench {

/// How much of everything; --help says what each command makes of it.
struct Sizes {
  std::size_t prompt_tokens = 0, cached_tokens = 0, new_tokens = 0;
  std::size_t samples = 1, turns = 1, repeat = 5;
  std::size_t users = 32, system_tokens = 1000;
};

/// Prompts that are not in the cache but for their first `cached_tokens`.
std::vector<Metric> measure_prefill(incipit::Engine& engine, const Yardstick& yardstick,
                                    const Sizes& sizes);
/// Texts behind prompts that have nothing in common.
std::vector<Metric> measure_decode(incipit::Engine& engine, const Yardstick& yardstick,
                                   const Sizes& sizes);
/// Texts behind one and the same prompt, and one such text (sharing.cpp).
std::vector<Metric> measure_shared(incipit::Engine& engine, const Yardstick& yardstick,
                                   const Sizes& sizes);
/// Chats of several turns.
std::vector<Metric> measure_turns(incipit::Engine& engine, const Yardstick& yardstick,
                                  const Sizes& sizes);
/// Users with one system prompt and a question each: all at once over one cache, and one after
/// another without (sharing.cpp).
std::vector<Metric> measure_users(incipit::Engine& engine, const Yardstick& yardstick,
                                  const Sizes& sizes);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_WORKLOADS_H_
