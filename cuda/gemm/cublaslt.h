// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_GEMM_CUBLASLT_H_
#define INCIPIT_CUDA_GEMM_CUBLASLT_H_

#include <memory>

#include "cuda/gemm/gemm.h"

namespace incipit::cuda {

/// cuBLASLt on a device, as the runtime counts. Null where this machine does not have the library,
/// or not for this device: it is looked for when it is wanted, since it is large, and is no part of
/// the driver.
std::unique_ptr<Gemm> open_cublaslt(int device, unsigned architecture);

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_GEMM_CUBLASLT_H_
