// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_LAUNCH_ATTENTION_WGMMA_H_
#define INCIPIT_CUDA_LAUNCH_ATTENTION_WGMMA_H_

#include "cuda/launch/attention.h"

namespace incipit::cuda {

/// Attention of the wide tiles by products of warpgroups. False, and nothing is done, unless `math`
/// is fast, the GPU has compute capability 9.0, this build has code for it (sm_90a), KV is 16 bits
/// wide and heads have 64 or 128 values.
bool launch_wgmma(Stream stream, Math math, device::KvFormat type,
                  const PagedAttentionParams& params, const TileLists& tiles);

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_LAUNCH_ATTENTION_WGMMA_H_
