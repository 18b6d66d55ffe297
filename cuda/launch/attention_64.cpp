// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch/attention_heads.h"

namespace incipit::cuda {

template void launch_heads<64>(Stream, device::KvFormat, const PagedAttentionParams&,
                               const TileLists&);

}  // namespace incipit::cuda
