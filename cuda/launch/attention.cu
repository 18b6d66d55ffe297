// SPDX-License-Identifier: Apache-2.0
// Machine code of attention for each type of KV and head dimension. BF16 products need sm_80.
#include "cuda/kernels/attention.cuh"

namespace incipit::cuda {

#define INCIPIT_ATTENTION(T, Stored, dim)                                          \
  template void attention_tiles<T, Stored, dim>(Stream, PagedAttentionParams,      \
                                                const AttentionTileRef*, unsigned, \
                                                const AttentionTileRef*, unsigned)
#define INCIPIT_ATTENTION_OF(T, Stored) \
  INCIPIT_ATTENTION(T, Stored, 64);     \
  INCIPIT_ATTENTION(T, Stored, 80);     \
  INCIPIT_ATTENTION(T, Stored, 96);     \
  INCIPIT_ATTENTION(T, Stored, 112);    \
  INCIPIT_ATTENTION(T, Stored, 128);    \
  INCIPIT_ATTENTION(T, Stored, 256)

INCIPIT_ATTENTION_OF(F16, F16);
INCIPIT_ATTENTION_OF(BF16, BF16);
INCIPIT_ATTENTION_OF(F16, std::int8_t);
INCIPIT_ATTENTION_OF(BF16, std::int8_t);

}  // namespace incipit::cuda
