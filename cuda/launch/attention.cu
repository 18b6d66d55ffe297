// SPDX-License-Identifier: Apache-2.0
// Machine code of attention that the device does not launch yet: int8 where there are no BF16
// products (before sm_80).
#include "cuda/kernels/attention.cuh"

namespace incipit::cuda {

#define INCIPIT_ATTENTION(dim)                                                            \
  template void attention_tiles<F16, std::int8_t, dim>(Stream, PagedAttentionParams,      \
                                                       const AttentionTileRef*, unsigned, \
                                                       const AttentionTileRef*, unsigned)

INCIPIT_ATTENTION(64);
INCIPIT_ATTENTION(80);
INCIPIT_ATTENTION(96);
INCIPIT_ATTENTION(112);
INCIPIT_ATTENTION(128);
INCIPIT_ATTENTION(256);

}  // namespace incipit::cuda
