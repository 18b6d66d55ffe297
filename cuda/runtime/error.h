// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_RUNTIME_ERROR_H_
#define INCIPIT_CUDA_RUNTIME_ERROR_H_

#include <cuda_runtime_api.h>

namespace incipit::cuda {

/// What a failed call of the runtime means to a caller, as an Error that says what to do. `doing`
/// completes "the GPU could not ...".
[[noreturn]] void throw_cuda_error(cudaError_t error, const char* doing);

inline void check_cuda(cudaError_t error, const char* doing) {
  if (error != cudaSuccess) throw_cuda_error(error, doing);
}

/// Whether a call into another library has left an error of the device.
inline void check_last_error(const char* doing) { check_cuda(cudaGetLastError(), doing); }

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_RUNTIME_ERROR_H_
