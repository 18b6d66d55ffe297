// SPDX-License-Identifier: Apache-2.0
// Machine code of what is done to rows of activations of 16 bits, which the device does not launch
// yet.
#include "cuda/kernels/elementwise.cuh"
#include "cuda/kernels/gather_rows.cuh"
#include "cuda/kernels/rope.cuh"

namespace incipit::cuda {

template void elementwise(Stream, const ElementwiseParams<F16>&);
template void elementwise(Stream, const ElementwiseParams<BF16>&);
template void rope(Stream, const RopeParams<F16>&, device::RopePairs);
template void rope(Stream, const RopeParams<BF16>&, device::RopePairs);
template void gather_rows(Stream, const GatherParams<F16, F16>&);
template void gather_rows(Stream, const GatherParams<BF16, BF16>&);

}  // namespace incipit::cuda
