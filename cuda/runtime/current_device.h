// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_RUNTIME_CURRENT_DEVICE_H_
#define INCIPIT_CUDA_RUNTIME_CURRENT_DEVICE_H_

#include "cuda/runtime/error.h"

namespace incipit::cuda {

/// Makes a device the current one of this thread for a while.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check_cuda(cudaGetDevice(&before_), "tell the current device");
    if (before_ == device) return;
    check_cuda(cudaSetDevice(device), "be made the current device");
    changed_ = true;
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_RUNTIME_CURRENT_DEVICE_H_
