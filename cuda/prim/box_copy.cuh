// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_BOX_COPY_CUH_
#define INCIPIT_CUDA_PRIM_BOX_COPY_CUH_

#if defined(__CUDACC__)
#include <cuda.h>
#endif

#include "base/check.h"
#include "cuda/prim/phase_barrier.cuh"

// Copies of boxes of an array in global memory to shared memory by one thread, without registers
// (cp.async.bulk.tensor, sm_90). The rows of a box are 128 bytes; within 1,024 bytes, at addresses
// divisible by 1,024, row r keeps its 16-byte chunk c at place c ^ (r % 8), as products of
// warpgroups want it.

namespace incipit::cuda {

/// An array of 16-bit values in global memory, the fastest dimension first.
struct BoxedArray {
  const void* base = nullptr;     // a multiple of 16 bytes, as are the strides
  std::uint64_t extents[3] = {};  // values, rows, planes; beyond them a copy gives zeros
  std::uint64_t row_bytes = 0;    // from one row to the next
  std::uint64_t plane_bytes = 0;  // from one plane to the next
  std::uint32_t box_rows = 0;     // of kBoxValues values in one plane, 256 at most
};
constexpr std::uint32_t kBoxValues = 64;

#if INCIPIT_CUDA_EMULATED

using TensorMap = simt::TensorMap;

inline TensorMap make_tensor_map(const BoxedArray& array) {
  return {array.base,
          {array.extents[0], array.extents[1], array.extents[2]},
          {array.row_bytes, array.plane_bytes},
          {kBoxValues, array.box_rows}};
}

#else

using TensorMap = CUtensorMap;

/// Asks the driver, which is not linked. The type of the values does not matter to a copy.
inline TensorMap make_tensor_map(const BoxedArray& array) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t asked = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry,
                                                             12000, cudaEnableDefault, &found);
  if (asked != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    base::throw_error(ErrorCode::kInternal, "the CUDA driver has no cuTensorMapEncodeTiled");
  }
  const cuuint64_t extents[3] = {array.extents[0], array.extents[1], array.extents[2]};
  const cuuint64_t strides[2] = {array.row_bytes, array.plane_bytes};
  const cuuint32_t box[3] = {kBoxValues, array.box_rows, 1}, every[3] = {1, 1, 1};
  CUtensorMap map;
  const CUresult made = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, const_cast<void*>(array.base), extents, strides, box,
      every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (made != CUDA_SUCCESS) {
    base::throw_error(ErrorCode::kInternal, "the CUDA driver does not take the map of the KV pool");
  }
  return map;
}

#endif

namespace prim {

/// Starts the copy of the box from values `x`, row `y` of plane `z` on; `barrier` gets its bytes.
/// `map` is a parameter of the kernel (INCIPIT_GRID_CONSTANT).
INCIPIT_DEVICE void copy_box(void* to, const TensorMap& map, int x, int y, int z,
                             PhaseBarrier* barrier, [[maybe_unused]] Site site = Site::here()) {
#if INCIPIT_CUDA_EMULATED
  simt::copy_box(to, map, x, y, z, barrier, site);
#else
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4}], [%5];\n" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(z), "r"(shared_address(barrier))
      : "memory");
#endif
}

}  // namespace prim
}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_PRIM_BOX_COPY_CUH_
