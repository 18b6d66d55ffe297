// SPDX-License-Identifier: Apache-2.0
// Machine code of products for each kind of weight. BF16 needs sm_80.
#include "cuda/kernels/product.cuh"

namespace incipit::cuda {

template void round_rows<F16>(Stream, const RoundRowsParams<F16>&);
template void round_rows<BF16>(Stream, const RoundRowsParams<BF16>&);

template void product<PlainWeight<F16>>(Stream, const ProductParams<PlainWeight<F16>>&);
template void product<PlainWeight<BF16>>(Stream, const ProductParams<PlainWeight<BF16>>&);
template void product<CodedWeight<CodingQ8_0>>(Stream,
                                               const ProductParams<CodedWeight<CodingQ8_0>>&);
template void product<CodedWeight<CodingQ4_0>>(Stream,
                                               const ProductParams<CodedWeight<CodingQ4_0>>&);
template void product<CodedWeight<CodingQ4_1>>(Stream,
                                               const ProductParams<CodedWeight<CodingQ4_1>>&);
template void product<CodedWeight<CodingQ6_K>>(Stream,
                                               const ProductParams<CodedWeight<CodingQ6_K>>&);

}  // namespace incipit::cuda
