// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch/attention_wgmma.h"

#include "cuda/kernels/attention.cuh"
#include "cuda/kernels/attention_wgmma.cuh"

namespace incipit::cuda {
namespace {

#if INCIPIT_CUDA_EMULATED || defined(INCIPIT_CUDA_SM_90A)
constexpr bool kHasCode = true;
#else
constexpr bool kHasCode = false;
#endif

template <class T, unsigned kDim>
bool launch_kernel(Stream stream, const PagedAttentionParams& params, const TileLists& tiles) {
  static_assert(wide_rows(kDim) == WgmmaShape::kRows);
  if constexpr (kHasCode) {
    attention_wgmma<T, kDim>(stream, params, tiles.wide, tiles.wide_count);
  }
  return kHasCode;
}

template <class T>
bool launch_type(Stream stream, const PagedAttentionParams& params, const TileLists& tiles) {
  if (params.head_dim == 64) return launch_kernel<T, 64>(stream, params, tiles);
  if (params.head_dim == 128) return launch_kernel<T, 128>(stream, params, tiles);
  return false;
}

}  // namespace

bool launch_wgmma(Stream stream, Math math, device::KvFormat type,
                  const PagedAttentionParams& params, const TileLists& tiles) {
  if (!math.fast || math.architecture != 90) return false;
  if (type == device::KvFormat::kF16) return launch_type<F16>(stream, params, tiles);
  if (type == device::KvFormat::kBF16) return launch_type<BF16>(stream, params, tiles);
  return false;
}

}  // namespace incipit::cuda
