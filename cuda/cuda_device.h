// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_CUDA_DEVICE_H_
#define INCIPIT_CUDA_CUDA_DEVICE_H_

#include <cstddef>
#include <memory>

#include "device/device.h"
#include "incipit/engine.h"

namespace incipit::cuda {

class Runtime;

struct CudaDeviceOptions {
  std::size_t number = 0;                         // of the GPU, as the driver counts
  Activations activations = Activations::kMixed;  // kFloat: weights and activations in f32
  GpuMath math = GpuMath::kExact;
  unsigned threads = 0;  // for what the host does to logits; 0: the CPUs that this process may use
};

/// A device that computes on an NVIDIA GPU; in exact mode all rows by the same kernels. One thread
/// may call it at a time, but for upload() and download().
///
/// Throws Error: kInvalidArgument where this build or this machine has no GPU that the kernels run
/// on, kOutOfMemory, kDeviceLost.
std::unique_ptr<device::Device> open_cuda_device(const CudaDeviceOptions& options = {});

/// The same over a runtime. Several devices may share one GPU, or have one each.
std::unique_ptr<device::Device> make_cuda_device(std::shared_ptr<Runtime> runtime,
                                                 Activations activations, unsigned threads,
                                                 GpuMath math = GpuMath::kExact);

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_CUDA_DEVICE_H_
