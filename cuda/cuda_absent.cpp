// SPDX-License-Identifier: Apache-2.0
// Stands in for the CUDA device in a build without nvcc.
#include "base/check.h"
#include "cuda/cuda_device.h"

namespace incipit::cuda {

std::unique_ptr<device::Device> open_cuda_device(const CudaDeviceOptions&) {
  base::throw_error(ErrorCode::kInvalidArgument,
                    "this build of incipit has no CUDA kernels; ask for DeviceKind::kAuto or kCpu, "
                    "or configure with INCIPIT_WITH_CUDA=ON");
}

}  // namespace incipit::cuda
