// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch/attention.h"

#include "base/check.h"
#include "cuda/kernels/attention_merge.cuh"
#include "cuda/launch/attention_wgmma.h"

namespace incipit::cuda {
namespace {

/// Calls body.operator()<kDim>() for a head size that there are kernels for.
template <class Body>
bool with_head_dim(std::size_t head_dim, const Body& body) {
  switch (head_dim) {
    case 64:
      body.template operator()<64>();
      return true;
    case 80:
      body.template operator()<80>();
      return true;
    case 96:
      body.template operator()<96>();
      return true;
    case 112:
      body.template operator()<112>();
      return true;
    case 128:
      body.template operator()<128>();
      return true;
    case 256:
      body.template operator()<256>();
      return true;
    default:
      return false;
  }
}

}  // namespace

bool has_attention(device::KvFormat type, std::size_t head_dim) noexcept {
  return type != device::KvFormat::kF32 && with_head_dim(head_dim, [&]<unsigned>() {});
}

void launch_attention(Stream stream, Math math, device::KvFormat type,
                      const PagedAttentionParams& params, const TileLists& tiles) {
  TileLists rest = tiles;
  if (launch_wgmma(stream, math, type, params, tiles)) rest.wide_count = 0;
  const bool known = with_head_dim(
      params.head_dim, [&]<unsigned kDim>() { launch_heads<kDim>(stream, type, params, rest); });
  INCIPIT_CHECK(known);
  attention_merge(stream, params);
}

}  // namespace incipit::cuda
