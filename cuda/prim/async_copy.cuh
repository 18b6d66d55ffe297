// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_ASYNC_COPY_CUH_
#define INCIPIT_CUDA_PRIM_ASYNC_COPY_CUH_

#include "cuda/prim/types.cuh"

// Copies from global to shared memory that run while the kernel computes (cp.async, sm_80). Until
// its thread has waited for it, the target holds garbage; other threads see it after a barrier that
// follows. Before sm_80 the copy is done at once, under the same rules.

namespace incipit::cuda::prim {

/// The address in the state space of shared memory, as instructions have it.
INCIPIT_DEVICE std::uint32_t shared_address(const void* address) {
#if INCIPIT_CUDA_EMULATED
  return simt::shared_address(address);
#else
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(address));
#endif
}

/// 16 bytes, aligned on both sides; zeros where not `valid`, when `from` need not hold anything but
/// must still be aligned.
INCIPIT_DEVICE void copy_async_16(void* to, const void* from, bool valid,
                                  [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  if (simt::running_block->options->architecture >= 80) {
    simt::async_copy(to, from, 16, valid ? 16 : 0, site);
  } else if (valid) {
    std::memcpy(to, from, 16);
  } else {
    std::memset(to, 0, 16);
  }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
#else
  *static_cast<uint4*>(to) = valid ? *static_cast<const uint4*>(from) : make_uint4(0, 0, 0, 0);
#endif
}

/// 4 bytes, likewise: for scales.
INCIPIT_DEVICE void copy_async_4(void* to, const void* from, bool valid,
                                 [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  if (simt::running_block->options->architecture >= 80) {
    simt::async_copy(to, from, 4, valid ? 4 : 0, site);
  } else if (valid) {
    std::memcpy(to, from, 4);
  } else {
    std::memset(to, 0, 4);
  }
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(shared_address(to)),
               "l"(from), "r"(bytes)
               : "memory");
#else
  *static_cast<unsigned*>(to) = valid ? *static_cast<const unsigned*>(from) : 0u;
#endif
}

/// Ends a group: the copies of this thread since the last one.
INCIPIT_DEVICE void commit_copies() {
#if INCIPIT_CUDA_EMULATED
  simt::commit_async_copies();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

/// Waits for all groups of this thread but the last kPending.
template <unsigned kPending>
INCIPIT_DEVICE void wait_copies() {
#if INCIPIT_CUDA_EMULATED
  simt::wait_async_copies(kPending);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
#endif
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_ASYNC_COPY_CUH_
