// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_ATOMIC_CUH_
#define INCIPIT_CUDA_PRIM_ATOMIC_CUH_

#include "cuda/prim/types.cuh"

// Atomics on integers, in global or shared memory, which order nothing else. There are none for
// floats: their sums would depend on who comes first.

namespace incipit::cuda::prim {

// CUDA's 64-bit atomics are declared for this type, which is not std::uint64_t.
using Wide = unsigned long long;

INCIPIT_DEVICE std::uint32_t atomic_add(std::uint32_t* target, std::uint32_t value) {
#if INCIPIT_CUDA_EMULATED
  simt::note_atomic();
  return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
#else
  return atomicAdd(target, value);
#endif
}

INCIPIT_DEVICE Wide atomic_add(Wide* target, Wide value) {
#if INCIPIT_CUDA_EMULATED
  simt::note_atomic();
  return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
#else
  return atomicAdd(target, value);
#endif
}

INCIPIT_DEVICE std::uint32_t atomic_max(std::uint32_t* target, std::uint32_t value) {
#if INCIPIT_CUDA_EMULATED
  simt::note_atomic();
  std::uint32_t found = __atomic_load_n(target, __ATOMIC_RELAXED);
  while (found < value && !__atomic_compare_exchange_n(target, &found, value, false,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return found;
#else
  return atomicMax(target, value);
#endif
}

INCIPIT_DEVICE std::uint32_t atomic_min(std::uint32_t* target, std::uint32_t value) {
#if INCIPIT_CUDA_EMULATED
  simt::note_atomic();
  std::uint32_t found = __atomic_load_n(target, __ATOMIC_RELAXED);
  while (found > value && !__atomic_compare_exchange_n(target, &found, value, false,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return found;
#else
  return atomicMin(target, value);
#endif
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_ATOMIC_CUH_
