// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch/attention_heads.h"

namespace incipit::cuda {

template void launch_heads<80>(Stream, device::KvFormat, const PagedAttentionParams&,
                               const TileLists&);
template void launch_heads<96>(Stream, device::KvFormat, const PagedAttentionParams&,
                               const TileLists&);
template void launch_heads<112>(Stream, device::KvFormat, const PagedAttentionParams&,
                                const TileLists&);

}  // namespace incipit::cuda
