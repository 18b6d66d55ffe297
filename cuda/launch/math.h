// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_LAUNCH_MATH_H_
#define INCIPIT_CUDA_LAUNCH_MATH_H_

namespace incipit::cuda {

/// What a launch may choose its kernels by.
struct Math {
  // GpuMath::kFast: by the number of rows, too. Else one arithmetic serves every number of rows.
  bool fast = false;
  unsigned architecture = 0;  // of the device; 90: compute capability 9.0
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_LAUNCH_MATH_H_
