// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_CACHE_REPLAY_HEAP_METER_H_
#define INCIPIT_BENCHMARKS_CACHE_REPLAY_HEAP_METER_H_

#include <cstddef>

namespace bench {

/// How far what this program has from operator new has grown beyond what it had when the meter was
/// made. For one meter at a time. The program's operators new and delete are replaced by ones that
/// count; they know what malloc gave, which is a little more than what was asked for.
class HeapMeter {
 public:
  HeapMeter() noexcept;
  std::size_t peak_bytes() const noexcept;

 private:
  std::size_t before_;
};

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_CACHE_REPLAY_HEAP_METER_H_
