// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_MMA_CUH_
#define INCIPIT_CUDA_PRIM_MMA_CUH_

#include "cuda/prim/async_copy.cuh"

// Matrix fragments of a warp: ldmatrix and mma.sync. All lanes must call from one place. With
// group = lane / 4 and pair = 2 (lane % 4), register j holds two neighbours, the left in its low
// half:
//   a [16, 16]  j = 0: row group,     columns pair;      1: row group + 8, columns pair
//               j = 2: row group,     columns pair + 8;  3: row group + 8, columns pair + 8
//   b [16, 8]   j = 0: rows pair, column group;          1: rows pair + 8, column group
//   d [16, 8]   j = 0, 1: row group, columns pair;       2, 3: row group + 8
// (PTX ISA, section 9.7.14: "Matrix fragments for mma.m16n8k16".)

namespace incipit::cuda::prim {

/// kCount (1, 2, 4) matrices of 8 x 8 values of 16 bits from shared memory. Lane l < 8 kCount names
/// row l % 8 of matrix l / 8: 16 aligned bytes. out[j] of lane l: row l / 4, columns 2 (l % 4) and
/// one more of matrix j, or of its transpose. Other lanes may pass anything.
template <unsigned kCount, bool kTransposed = false>
INCIPIT_DEVICE void load_matrix(std::uint32_t (&out)[kCount], const void* row,
                                [[maybe_unused]] Site site = Site::here()) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4);
#if INCIPIT_CUDA_EMULATED
  simt::load_matrix(out, row, kCount, kTransposed, site);
#else
  const std::uint32_t address = shared_address(row);
  if constexpr (kCount == 4 && !kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 4) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 2 && !kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];\n"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(address)
                 : "memory");
  } else if constexpr (kCount == 2) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];\n"
                 : "=r"(out[0]), "=r"(out[1])
                 : "r"(address)
                 : "memory");
  } else if constexpr (!kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\n"
                 : "=r"(out[0])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];\n"
                 : "=r"(out[0])
                 : "r"(address)
                 : "memory");
  }
#endif
}

/// d += a b for T = F16 or BF16, in f32. sm_75 has F16 only, and takes two steps of 8 columns of a.
template <class T>
INCIPIT_DEVICE void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                             std::uint32_t b1, [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  constexpr simt::Element type = kIsBF16<T> ? simt::Element::kBF16 : simt::Element::kF16;
  const std::uint32_t b[2] = {b0, b1};
  if (simt::running_block->options->architecture >= 80) {
    simt::multiply(type, 16, d, a, b, site);
  } else {
    simt::multiply(type, 8, d, a, b, site);
    simt::multiply(type, 8, d, a + 2, b + 1, site);
  }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (kIsBF16<T>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
#else
  if constexpr (kIsBF16<T>) {
    trap();
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
  }
#endif
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_MMA_CUH_
