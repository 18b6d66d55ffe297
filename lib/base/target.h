// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_BASE_TARGET_H_
#define INCIPIT_BASE_TARGET_H_

// Functions between INCIPIT_TARGET_BEGIN(isa) and INCIPIT_TARGET_END are compiled for that
// instruction set, all others for the baseline. There are no -m flags: with them the linker may
// keep a wide copy of an inline function for the baseline. Include everything before the region;
// inside it put only functions of an unnamed namespace within avx2 or avx512, and the
// entry points that the dispatch calls.

#if defined(__x86_64__)
#define INCIPIT_CPU_X86 1
#else
#define INCIPIT_CPU_X86 0
#endif

// The instruction sets, as base::CpuFeatures reports them.
#define INCIPIT_ISA_AVX2 "avx2,fma,f16c"
#define INCIPIT_ISA_AVX512 "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
#define INCIPIT_ISA_AVX512_BF16 \
  "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16"

#define INCIPIT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define INCIPIT_TARGET_BEGIN(isa) \
  INCIPIT_PRAGMA(clang attribute push(__attribute__((target(isa))), apply_to = function))
#define INCIPIT_TARGET_END INCIPIT_PRAGMA(clang attribute pop)
#else
// g++ 12 takes the deliberately undefined operand inside some intrinsics for a mistake of ours.
#define INCIPIT_TARGET_BEGIN(isa)                          \
  INCIPIT_PRAGMA(GCC push_options)                         \
  INCIPIT_PRAGMA(GCC target(isa))                          \
  INCIPIT_PRAGMA(GCC diagnostic push)                      \
  INCIPIT_PRAGMA(GCC diagnostic ignored "-Wuninitialized") \
  INCIPIT_PRAGMA(GCC diagnostic ignored "-Wmaybe-uninitialized")
#define INCIPIT_TARGET_END           \
  INCIPIT_PRAGMA(GCC diagnostic pop) \
  INCIPIT_PRAGMA(GCC pop_options)
#endif

// Before a loop over a constant count whose arrays are to live in registers.
#if defined(__clang__)
#define INCIPIT_UNROLL INCIPIT_PRAGMA(unroll)
#else
#define INCIPIT_UNROLL INCIPIT_PRAGMA(GCC unroll 32)
#endif

#endif  // INCIPIT_BASE_TARGET_H_
