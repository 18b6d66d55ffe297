// SPDX-License-Identifier: Apache-2.0
// Machine code of append_kv for each type of KV.
#include "cuda/kernels/append_kv.cuh"

namespace incipit::cuda {

template void append_kv<float>(Stream, const AppendKvParams&);
template void append_kv<F16>(Stream, const AppendKvParams&);
template void append_kv<BF16>(Stream, const AppendKvParams&);
template void append_kv<std::int8_t>(Stream, const AppendKvParams&);

}  // namespace incipit::cuda
