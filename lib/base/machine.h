// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_MACHINE_H_
#define INCIPIT_BASE_MACHINE_H_

#include <cstdint>
#include <filesystem>

namespace incipit::base {

/// What this CPU and its operating system can run. All false on other architectures than x86-64.
struct CpuFeatures {
  bool avx2 = false;         // AVX2, FMA and F16C
  bool avx512 = false;       // AVX-512 F, BW, DQ, VL and VNNI
  bool avx512_bf16 = false;  // and BF16 dot products,
  bool slow_bf16 = false;    // which multiply less than fused multiply-adds of F32 do

  bool uses_bf16_dots() const noexcept { return avx512_bf16 && !slow_bf16; }
};
CpuFeatures cpu_features() noexcept;

/// CPUs that this process may use: its affinity, capped by the cgroup's CPU quota (rounded up).
/// At least 1.
unsigned available_cpus();

/// Bytes of memory that this process may use: the machine's, capped by the cgroup's limit.
std::uint64_t available_memory();

/// The same two read from the given roots of procfs and of the cgroup file system, for tests.
unsigned cgroup_cpu_quota(const std::filesystem::path& proc, const std::filesystem::path& cgroup);
std::uint64_t cgroup_memory_limit(const std::filesystem::path& proc,
                                  const std::filesystem::path& cgroup);

/// Puts the calling thread into the default floating-point environment (round to nearest, no
/// flush to zero, exceptions masked) and restores the host's when it goes.
class ScopedFloatEnvironment {
 public:
  ScopedFloatEnvironment() noexcept;
  ~ScopedFloatEnvironment();
  ScopedFloatEnvironment(const ScopedFloatEnvironment&) = delete;
  ScopedFloatEnvironment& operator=(const ScopedFloatEnvironment&) = delete;

 private:
  alignas(16) unsigned char saved_[64];  // a fenv_t
};

}  // namespace incipit::base

#endif  // INCIPIT_BASE_MACHINE_H_
