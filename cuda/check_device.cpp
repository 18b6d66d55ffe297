// SPDX-License-Identifier: Apache-2.0
#include "base/check.h"
#include "cuda/runtime.h"

namespace incipit::cuda {

void check_device(const std::vector<DeviceProperties>& devices, std::size_t device) {
  if (devices.empty()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "the NVIDIA driver shows no GPU; check CUDA_VISIBLE_DEVICES, or ask for "
                      "DeviceKind::kAuto or kCpu");
  }
  if (device >= devices.size()) {
    base::throw_error(ErrorCode::kInvalidArgument,
                      "there is no GPU number " + std::to_string(device) + "; this machine has " +
                          std::to_string(devices.size()) + ", counted from 0");
  }
  const DeviceProperties& properties = devices[device];
  if (properties.architecture < kOldestArchitecture) {
    const auto capability = [](unsigned architecture) {
      return std::to_string(architecture / 10) + "." + std::to_string(architecture % 10);
    };
    base::throw_error(ErrorCode::kInvalidArgument,
                      properties.name + " has compute capability " +
                          capability(properties.architecture) + ", but the kernels need " +
                          capability(kOldestArchitecture) +
                          " or newer; ask for DeviceKind::kAuto or kCpu");
  }
}

}  // namespace incipit::cuda
