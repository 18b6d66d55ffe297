// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace incipit::base {

#if defined(__x86_64__)
namespace {

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero where the CPU does not know the leaf.
Registers cpuid(unsigned leaf, unsigned subleaf) noexcept {
  Registers out;
  if (__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx) == 0) return {};
  return out;
}

constexpr bool has(unsigned value, unsigned bits) noexcept { return (value & bits) == bits; }

// Intel's cores since Sapphire Rapids start a BF16 dot product of 32 pairs every second cycle, and
// two fused multiply-adds of 16 floats in each: half as many products. AMD's start two of both.
bool is_intel() noexcept {
  const Registers leaf0 = cpuid(0, 0);
  return leaf0.ebx == signature_INTEL_ebx && leaf0.ecx == signature_INTEL_ecx &&
         leaf0.edx == signature_INTEL_edx;
}

// XCR0: which register files the operating system saves and restores.
unsigned enabled_states() noexcept {
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr unsigned kYmmState = 0x06;  // XMM and upper halves of YMM
constexpr unsigned kZmmState = 0xE0;  // mask registers, upper halves of ZMM, ZMM16 to 31

}  // namespace

CpuFeatures cpu_features() noexcept {
  const Registers leaf1 = cpuid(1, 0);
  if (!has(leaf1.ecx, bit_OSXSAVE | bit_AVX)) return {};
  const unsigned states = enabled_states();
  const Registers leaf7 = cpuid(7, 0);
  const bool has_subleaf1 = leaf7.eax >= 1;

  CpuFeatures features;
  features.avx2 =
      has(states, kYmmState) && has(leaf1.ecx, bit_FMA | bit_F16C) && has(leaf7.ebx, bit_AVX2);
  features.avx512 = features.avx2 && has(states, kZmmState) &&
                    has(leaf7.ebx, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL) &&
                    has(leaf7.ecx, bit_AVX512VNNI);
  features.avx512_bf16 = features.avx512 && has_subleaf1 && has(cpuid(7, 1).eax, bit_AVX512BF16);
  features.slow_bf16 = features.avx512_bf16 && is_intel();
  return features;
}

#else

CpuFeatures cpu_features() noexcept { return {}; }

#endif

}  // namespace incipit::base
