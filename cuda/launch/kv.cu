// SPDX-License-Identifier: Apache-2.0
// Machine code of what is done to blocks of KV; the device does not launch it yet.
#include "cuda/kernels/copy_blocks.cuh"
#include "cuda/kernels/quantize_kv.cuh"

namespace incipit::cuda {

template __global__ void copy_blocks_kernel<256>(CopyBlocksParams);
template void quantize_kv(Stream, const QuantizeKvParams<F16>&);
template void quantize_kv(Stream, const QuantizeKvParams<BF16>&);
template void dequantize_kv(Stream, const QuantizeKvParams<F16>&);
template void dequantize_kv(Stream, const QuantizeKvParams<BF16>&);

}  // namespace incipit::cuda
