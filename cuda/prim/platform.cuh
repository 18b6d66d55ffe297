// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_PLATFORM_CUH_
#define INCIPIT_CUDA_PRIM_PLATFORM_CUH_

#include <cstddef>
#include <cstdint>

// One source for two compilers: nvcc makes machine code of a kernel, any other C++ compiler makes
// a program of it that runs on the SIMT emulator (tests/simt). The files of cuda/prim are all that
// differs; a kernel uses nothing but them.
#if defined(__CUDACC__)
#define INCIPIT_CUDA_EMULATED 0
#include <cuda_runtime.h>
#define INCIPIT_DEVICE __device__ __forceinline__
#define INCIPIT_HOST_DEVICE __host__ __device__
// Threads of a block. Behind them, blocks per multiprocessor to make room for: with 1, ptxas spills
// no register for the sake of more; 0 leaves it to ptxas.
#define INCIPIT_KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
// Of a kernel's parameter of which instructions take the address.
#define INCIPIT_GRID_CONSTANT __grid_constant__
// Before a loop whose index must become constant, because it picks registers.
#define INCIPIT_UNROLL _Pragma("unroll")
#else
#define INCIPIT_CUDA_EMULATED 1
#include <simt/device.h>
#define INCIPIT_DEVICE inline __attribute__((always_inline))
#define INCIPIT_HOST_DEVICE
#define INCIPIT_KERNEL(...) inline void
#define INCIPIT_GRID_CONSTANT
#define INCIPIT_UNROLL
#endif

/// 1 where kernels can have the instructions of sm_90a: wgmma and setmaxnreg.
#if INCIPIT_CUDA_EMULATED || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define INCIPIT_CUDA_WARPGROUPS 1
#else
#define INCIPIT_CUDA_WARPGROUPS 0
#endif

/// Declares an object or array in the shared memory of the block: INCIPIT_SHARED(float[32], sums).
#if INCIPIT_CUDA_EMULATED
#define INCIPIT_SHARED(type, name)                               \
  static constexpr char name##_declaration = 0;                  \
  auto& name = *static_cast<::incipit::cuda::prim::Same<type>*>( \
      ::incipit::simt::static_shared(&name##_declaration, sizeof(type)))
#else
#define INCIPIT_SHARED(type, name) __shared__ ::incipit::cuda::prim::Same<type> name
#endif

namespace incipit::cuda::prim {

template <class T>
struct SameType {
  using Type = T;
};
template <class T>
using Same = typename SameType<T>::Type;

constexpr unsigned kWarpLanes = 32;
constexpr std::uint32_t kAllLanes = 0xffffffffu;

#if INCIPIT_CUDA_EMULATED

/// Where a primitive is called, for reports of the emulator.
struct Site {
  const char* file;
  int line;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr operator simt::Site() const {
    return {file, line};
  }  // NOLINT(google-explicit-constructor)
};

INCIPIT_DEVICE unsigned thread_x() { return simt::running_thread->thread.x; }
INCIPIT_DEVICE unsigned block_x() { return simt::running_block->block.x; }
INCIPIT_DEVICE unsigned block_y() { return simt::running_block->block.y; }
INCIPIT_DEVICE unsigned block_z() { return simt::running_block->block.z; }
INCIPIT_DEVICE unsigned blocks_x() { return simt::running_block->grid.x; }
INCIPIT_DEVICE unsigned blocks_y() { return simt::running_block->grid.y; }

/// Waits for all threads of the block; what they wrote before is seen by all after it.
INCIPIT_DEVICE void sync_threads(Site site = Site::here()) { simt::sync_threads(site); }

/// The dynamic shared memory, aligned to 16 bytes.
template <class T>
INCIPIT_DEVICE T* dynamic_shared() {
  return reinterpret_cast<T*>(simt::dynamic_shared());
}

/// Ends the kernel with an error of the stream.
[[noreturn]] INCIPIT_DEVICE void trap(Site site = Site::here()) { simt::fail("trap", site); }

#else

struct Site {
  static constexpr __host__ __device__ Site here() { return {}; }
};

INCIPIT_DEVICE unsigned thread_x() { return threadIdx.x; }
INCIPIT_DEVICE unsigned block_x() { return blockIdx.x; }
INCIPIT_DEVICE unsigned block_y() { return blockIdx.y; }
INCIPIT_DEVICE unsigned block_z() { return blockIdx.z; }
INCIPIT_DEVICE unsigned blocks_x() { return gridDim.x; }
INCIPIT_DEVICE unsigned blocks_y() { return gridDim.y; }

INCIPIT_DEVICE void sync_threads(Site = Site::here()) { __syncthreads(); }

template <class T>
INCIPIT_DEVICE T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char incipit_dynamic_shared[];
  return reinterpret_cast<T*>(incipit_dynamic_shared);
}

INCIPIT_DEVICE void trap(Site = Site::here()) { __trap(); }

#endif

/// Of a block that counts its threads by x alone, as all of ours do.
INCIPIT_DEVICE unsigned lane() { return thread_x() % kWarpLanes; }
INCIPIT_DEVICE unsigned warp() { return thread_x() / kWarpLanes; }

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_PLATFORM_CUH_
