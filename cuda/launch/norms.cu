// SPDX-License-Identifier: Apache-2.0
// Machine code of the norms for activations of 16 bits, which the device does not launch yet.
#include "cuda/kernels/layer_norm.cuh"
#include "cuda/kernels/rms_norm.cuh"

namespace incipit::cuda {

template void rms_norm(Stream, const NormParams<F16>&);
template void rms_norm(Stream, const NormParams<BF16>&);
template void layer_norm(Stream, const NormParams<F16>&);
template void layer_norm(Stream, const NormParams<BF16>&);

}  // namespace incipit::cuda
