// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_GROUP_PRODUCT_CUH_
#define INCIPIT_CUDA_PRIM_GROUP_PRODUCT_CUH_

#include "cuda/prim/async_copy.cuh"

// Products of warpgroups of four warps (wgmma, sm_90a), which run while the warps go on:
//
//   begin_products(d)       registers are as they should be
//   multiply_group...       any number
//   commit_products()       they are a group
//   wait_products<n>(d)     all groups but the last n are done; d holds the sums
//
// In between, neither the registers nor the shared memory that products read or write may be
// touched. All threads of the warpgroup must call from one place. Warp w of the group has the rows
// 16 w .. 16 w + 15 of a [64, 16] and d [64, kColumns] in the fragments of mma.cuh: register
// 4 n + j of d is register j of the fragment of columns 8 n.

namespace incipit::cuda::prim {

constexpr unsigned kGroupThreads = 128;

/// Describes a matrix in shared memory whose 128-byte rows are swizzled as box_copy.cuh has it.
/// K-major (k runs along a row): 8 rows of the matrix in each 1,024 bytes, the next 8 `stride`
/// bytes on; the steps of 16 k begin 32 bytes apart. MN-major (k counts the rows): 8 k in each
/// 1,024 bytes, the next 8 k `stride` bytes on, the next 64 columns `leading` bytes on.
INCIPIT_DEVICE std::uint64_t describe_matrix(std::uint32_t address, unsigned leading,
                                             unsigned stride) {
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  return kSwizzle128 | std::uint64_t{(address & 0x3ffffu) >> 4} |
         std::uint64_t{leading >> 4} << 16 | std::uint64_t{stride >> 4} << 32;
}

#if !INCIPIT_CUDA_EMULATED
/// The compiler leaves neither writes behind this place nor reads in front of it.
template <unsigned kCount>
INCIPIT_DEVICE void hold(float (&registers)[kCount]) {
  INCIPIT_UNROLL
  for (unsigned i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}
template <unsigned kSteps>
INCIPIT_DEVICE void hold(std::uint32_t (&registers)[kSteps][4]) {
  INCIPIT_UNROLL
  for (unsigned i = 0; i < 4 * kSteps; ++i) {
    asm volatile("" : "+r"(registers[i / 4][i % 4])::"memory");
  }
}
#endif

/// `registers`: sums, and fragments of a, that the products to come use.
template <class... Registers>
INCIPIT_DEVICE void begin_products([[maybe_unused]] Site site, Registers&... registers) {
#if INCIPIT_CUDA_EMULATED
  ((void)registers, ...);
  simt::fence_products(site);
#else
  (hold(registers), ...);
  asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#endif
}

INCIPIT_DEVICE void commit_products([[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  simt::commit_products(site);
#else
  asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
#endif
}

/// `registers`: those that become usable.
template <unsigned kPending, class... Registers>
INCIPIT_DEVICE void wait_products([[maybe_unused]] Site site, Registers&... registers) {
#if INCIPIT_CUDA_EMULATED
  ((void)registers, ...);
  simt::wait_products(kPending, site);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
  (hold(registers), ...);
#endif
}

#if !INCIPIT_CUDA_EMULATED
// Operands %0 .. of the sums, by 32.
#define INCIPIT_SUMS_TEXT_0                                                                    \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define INCIPIT_SUMS_TEXT_1                                                                      \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54," \
  "%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define INCIPIT_SUMS_8(d, i)                                                                  \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define INCIPIT_SUMS_32(d, i)                                                \
  INCIPIT_SUMS_8(d, i), INCIPIT_SUMS_8(d, i + 8), INCIPIT_SUMS_8(d, i + 16), \
      INCIPIT_SUMS_8(d, i + 24)
#define INCIPIT_SHARED_PRODUCT(type)                                                        \
  asm volatile(                                                                             \
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, %66, 0;\n"                                    \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" INCIPIT_SUMS_TEXT_0 \
      "," INCIPIT_SUMS_TEXT_1 "}, %64, %65, keep, 1, 1, 0, 0;\n}\n"                         \
      : INCIPIT_SUMS_32(d, 0), INCIPIT_SUMS_32(d, 32)                                       \
      : "l"(a), "l"(b), "n"(kKeep ? 1 : 0))
#define INCIPIT_REGISTER_PRODUCT_64(type)                                                  \
  asm volatile(                                                                            \
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, 1, 0;\n"                                     \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {" INCIPIT_SUMS_TEXT_0 \
      "}, {%32,%33,%34,%35}, %36, keep, 1, 1, 1;\n}\n"                                     \
      : INCIPIT_SUMS_32(d, 0)                                                              \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define INCIPIT_REGISTER_PRODUCT_128(type)                                                  \
  asm volatile(                                                                             \
      "{\n.reg .pred keep;\nsetp.ne.b32 keep, 1, 0;\n"                                      \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " {" INCIPIT_SUMS_TEXT_0 \
      "," INCIPIT_SUMS_TEXT_1 "}, {%64,%65,%66,%67}, %68, keep, 1, 1, 1;\n}\n"              \
      : INCIPIT_SUMS_32(d, 0), INCIPIT_SUMS_32(d, 32)                                       \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#endif

/// d = a b^T, + d if kKeep: a [64, 16] and b [128, 16] of T by descriptors, both K-major.
template <class T, bool kKeep>
INCIPIT_DEVICE void multiply_group(float (&d)[64], std::uint64_t a, std::uint64_t b,
                                   [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  constexpr simt::Element type = kIsBF16<T> ? simt::Element::kBF16 : simt::Element::kF16;
  simt::multiply_async({type, 128, false, kKeep, a, b}, d, nullptr, site);
#else
  if constexpr (kIsBF16<T>) {
    INCIPIT_SHARED_PRODUCT("bf16");
  } else {
    INCIPIT_SHARED_PRODUCT("f16");
  }
#endif
}

/// d += a b: a [64, 16] in registers, b [16, kColumns] by a descriptor, MN-major.
template <class T, unsigned kCount>
INCIPIT_DEVICE void multiply_group_rows(float (&d)[kCount], const std::uint32_t (&a)[4],
                                        std::uint64_t b,
                                        [[maybe_unused]] Site site = Site::here()) {
  static_assert(kCount == 32 || kCount == 64);
#if INCIPIT_CUDA_EMULATED
  constexpr simt::Element type = kIsBF16<T> ? simt::Element::kBF16 : simt::Element::kF16;
  simt::multiply_async({type, 2 * kCount, true, true, 0, b}, d, a, site);
#else
  if constexpr (kIsBF16<T> && kCount == 64) {
    INCIPIT_REGISTER_PRODUCT_128("bf16");
  } else if constexpr (kCount == 64) {
    INCIPIT_REGISTER_PRODUCT_128("f16");
  } else if constexpr (kIsBF16<T>) {
    INCIPIT_REGISTER_PRODUCT_64("bf16");
  } else {
    INCIPIT_REGISTER_PRODUCT_64("f16");
  }
#endif
}

#if !INCIPIT_CUDA_EMULATED
#undef INCIPIT_SUMS_TEXT_0
#undef INCIPIT_SUMS_TEXT_1
#undef INCIPIT_SUMS_8
#undef INCIPIT_SUMS_32
#undef INCIPIT_SHARED_PRODUCT
#undef INCIPIT_REGISTER_PRODUCT_64
#undef INCIPIT_REGISTER_PRODUCT_128
#endif

/// The warpgroup takes or leaves registers of the multiprocessor: so many per thread from here on,
/// 24 to 256 by eights. All its threads must call.
template <unsigned kCount, bool kMore>
INCIPIT_DEVICE void set_register_count() {
  static_assert(kCount % 8 == 0 && kCount >= 24 && kCount <= 256);
#if !INCIPIT_CUDA_EMULATED
  if constexpr (kMore) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;\n" ::"n"(kCount));
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;\n" ::"n"(kCount));
  }
#endif
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_GROUP_PRODUCT_CUH_
