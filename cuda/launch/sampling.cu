// SPDX-License-Identifier: Apache-2.0
// Machine code of what is done to logits; the device does not launch it yet.
#include "cuda/kernels/adjust_logits.cuh"
#include "cuda/kernels/sample.cuh"

namespace incipit::cuda {

template __global__ void adjust_logits_kernel<256>(AdjustLogitsParams);
template __global__ void sample_kernel<512>(SampleParams);

}  // namespace incipit::cuda
