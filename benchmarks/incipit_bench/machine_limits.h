// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BENCHMARKS_INCIPIT_BENCH_MACHINE_LIMITS_H_
#define INCIPIT_BENCHMARKS_INCIPIT_BENCH_MACHINE_LIMITS_H_

#include <incipit/engine.h>

#include <algorithm>
#include <string>

namespace bench {

/// What a number of threads of this machine can do at best, measured. 0: no such instruction.
struct MachineLimits {
  double memory_bytes = 0.0;  // per second, read from memory that no cache holds
  double f32_flops = 0.0;     // per second: fused multiply-adds count twice
  double bf16_flops = 0.0;    // per second: BF16 dot products
  double int8_ops = 0.0;      // per second: int8 dot products

  /// What prefill is compared with: BF16 dot products or f32, whichever is faster.
  double prefill_flops() const noexcept { return std::max(bf16_flops, f32_flops); }
};

/// Takes about a second. `path` leaves out instructions that the path does not use.
MachineLimits measure_limits(unsigned threads, incipit::CpuPath path);

/// As the operating system calls it; "unknown" where it does not say.
std::string cpu_name();

}  // namespace bench

#endif  // INCIPIT_BENCHMARKS_INCIPIT_BENCH_MACHINE_LIMITS_H_
