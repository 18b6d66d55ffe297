// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_MEMORY_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_MEMORY_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "incipit/compressor.h"
#include "incipit/message.h"

namespace bench {

/// What remembers a conversation within a budget.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void add(const incipit::Message& message) = 0;
  /// What the request for the last user message sends.
  virtual std::vector<incipit::Message> prompt() = 0;
  /// What a request for `question` would send now. Leaves no trace.
  virtual std::vector<incipit::Message> probe(const incipit::Message& question) const = 0;
};

inline constexpr std::array<std::string_view, 5> kPolicies{
    "window", "summary_buffer", "query_rewrite", "dedup_summary_truncate", "frozen_segments"};

/// By a name of kPolicies. `options` are those of a Compressor; its policy is set.
std::unique_ptr<Memory> make_memory(std::string_view policy, incipit::CompressorOptions options,
                                    const incipit::TokenCounter& counter);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_MEMORY_H_
