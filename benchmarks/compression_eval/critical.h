// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CRITICAL_H_
#define INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CRITICAL_H_

#include <array>
#include <cstddef>
#include <string_view>

namespace bench {

/// Words whose loss changes what a text says.
enum class Critical { kNumber, kNegation, kIdentifier };

struct CriticalCounts {
  std::array<std::size_t, 3> counts = {};

  std::size_t operator[](Critical kind) const { return counts[static_cast<std::size_t>(kind)]; }
  CriticalCounts& operator+=(const CriticalCounts& more) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += more.counts[i];
    return *this;
  }
};

/// Numbers begin with a digit. Negations are those of English and Chinese. Identifiers have
/// capitals, digits or underscores behind their first character.
CriticalCounts count_critical(std::string_view text);

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_COMPRESSION_EVAL_CRITICAL_H_
