// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_PHASE_BARRIER_CUH_
#define INCIPIT_CUDA_PRIM_PHASE_BARRIER_CUH_

#include "cuda/prim/async_copy.cuh"

// Barriers in shared memory that count arrivals and bytes of copies, phase by phase (mbarrier,
// sm_90). A phase ends when all arrivals and all bytes that they expect are there; phases have
// parity 0, 1, 0, ... What a thread did before it arrived is seen by who has waited for the phase.

namespace incipit::cuda::prim {

struct alignas(8) PhaseBarrier {
  std::uint64_t state;
};

/// By one thread, which then calls publish_barriers(); the others may use it after a barrier.
INCIPIT_DEVICE void init_barrier(PhaseBarrier* barrier, unsigned arrivals,
                                 [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  simt::init_barrier(barrier, arrivals, site);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
#endif
}

/// Copies, too, see the barriers that this thread has made.
INCIPIT_DEVICE void publish_barriers([[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  simt::publish_barriers(site);
#else
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
#endif
}

/// The phase does not end before `bytes` more of copies are there.
INCIPIT_DEVICE void arrive(PhaseBarrier* barrier, unsigned bytes = 0,
                           [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  simt::arrive(barrier, bytes, site);
#else
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
#endif
}

/// Waits until the phase of this parity, the current one or that before it, is over: so parity 1
/// is over from the start.
INCIPIT_DEVICE void wait_phase(PhaseBarrier* barrier, unsigned parity,
                               [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  simt::wait_phase(barrier, parity, site);
#else
  std::uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}\n"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  }
#endif
}

/// What this thread has stored in shared memory is seen by copies of boxes and by products of
/// warpgroups that are issued after it, or after a barrier that follows.
INCIPIT_DEVICE void fence_async_proxy() {
#if INCIPIT_CUDA_EMULATED
  simt::fence_async_proxy();
#else
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
#endif
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_PHASE_BARRIER_CUH_
