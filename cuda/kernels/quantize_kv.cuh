// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_QUANTIZE_KV_CUH_
#define INCIPIT_CUDA_KERNELS_QUANTIZE_KV_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"
#include "cuda/prim/memory.cuh"
#include "cuda/prim/warp.cuh"
#include "device/kv_layout.h"

// int8 KV: the values of one token and head are q = x * (127 / top), rounded to nearest even, with
// the scale top / 127, where top is the largest |x|: the same integers as on the CPU. A row below
// 2^-100 counts as zero; one with an infinity or NaN gets the scale NaN, so that the damage shows.

namespace incipit::cuda {

constexpr unsigned kMaxHeadDim = 256;
constexpr auto kRecordTokens = static_cast<std::int64_t>(device::kBlockTokens);

struct KvScale {
  float scale;
  float inverse;  // 0: all integers are zero
};

/// Of the row whose largest magnitude is `top`, infinity where it holds an infinity or a NaN.
INCIPIT_DEVICE KvScale kv_scale(float top) {
  using namespace prim;
  if (top == infinity()) return {bit_cast<float>(0x7fc00000u), 0.0f};
  if (top < 0x1p-100f) return {0.0f, 0.0f};
  return {divide_rn(top, 127.0f), divide_rn(127.0f, top)};
}

/// The largest of a warp's magnitudes.
INCIPIT_DEVICE float largest_magnitude(float top) {
  return prim::reduce_lanes(top, [](float a, float b) { return a > b ? a : b; });
}

/// |x|, infinity of a NaN.
INCIPIT_DEVICE float magnitude(float x) {
  const std::uint32_t bits = prim::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
  return bits >= 0x7f800000u ? prim::infinity() : prim::bit_cast<float>(bits);
}

INCIPIT_DEVICE std::int8_t kv_integer(float x, float inverse) {
  if (inverse == 0.0f) return 0;
  return static_cast<std::int8_t>(static_cast<std::int32_t>(prim::round_to_even(x * inverse)));
}

/// T: float, F16 or BF16, the dense side. Records are heads of blocks: 16 rows [head_dim], and
/// behind those of int8 their 16 scales.
template <class T>
struct QuantizeKvParams {
  T* dense = nullptr;         // [records, 16, head_dim]
  std::byte* int8 = nullptr;  // [records, 16 * head_dim + 64 bytes]
  unsigned records = 0;
  unsigned head_dim = 0;  // at most kMaxHeadDim
};

INCIPIT_DEVICE std::int64_t int8_record_bytes(unsigned head_dim) {
  return kRecordTokens * (std::int64_t{head_dim} + 4);
}

/// One block per record, one warp per token.
template <class T>
INCIPIT_KERNEL(512)
quantize_kv_kernel(QuantizeKvParams<T> params) {
  using namespace prim;
  constexpr unsigned kPerLane = kMaxHeadDim / kWarpLanes;
  const std::int64_t token = block_x() * kRecordTokens + warp();
  const T* const from = params.dense + token * params.head_dim;
  std::byte* const record = params.int8 + block_x() * int8_record_bytes(params.head_dim);
  float values[kPerLane];
  float top = 0.0f;
  for (unsigned i = 0; i < kPerLane; ++i) {
    const unsigned at = i * kWarpLanes + lane();
    values[i] = at < params.head_dim ? to_float(load(from + at)) : 0.0f;
    top = magnitude(values[i]) > top ? magnitude(values[i]) : top;
  }
  const KvScale scale = kv_scale(largest_magnitude(top));
  auto* const integers = reinterpret_cast<std::int8_t*>(record) + warp() * params.head_dim;
  for (unsigned i = 0; i < kPerLane; ++i) {
    const unsigned at = i * kWarpLanes + lane();
    if (at < params.head_dim) store(integers + at, kv_integer(values[i], scale.inverse));
  }
  auto* const scales = reinterpret_cast<float*>(record + kRecordTokens * params.head_dim);
  if (lane() == 0) store(scales + warp(), scale.scale);
}

/// The way back: scale * q, rounded to T. A damaged row becomes NaN, which V in a pool must not be
/// (KvPlane).
template <class T>
INCIPIT_KERNEL(512)
dequantize_kv_kernel(QuantizeKvParams<T> params) {
  using namespace prim;
  const std::int64_t token = block_x() * kRecordTokens + warp();
  const std::byte* const record = params.int8 + block_x() * int8_record_bytes(params.head_dim);
  const auto* const integers =
      reinterpret_cast<const std::int8_t*>(record) + warp() * params.head_dim;
  const auto* const scales =
      reinterpret_cast<const float*>(record + kRecordTokens * params.head_dim);
  const float scale = load(scales + warp());
  T* const to = params.dense + token * params.head_dim;
  for (unsigned at = lane(); at < params.head_dim; at += kWarpLanes) {
    store(to + at, from_float<T>(scale * static_cast<float>(load(integers + at))));
  }
}

template <class T>
void quantize_kv(Stream stream, const QuantizeKvParams<T>& params) {
  INCIPIT_CHECK(params.head_dim <= kMaxHeadDim);
  launch(stream, {.blocks_x = params.records, .threads = 512}, &quantize_kv_kernel<T>, params);
}

template <class T>
void dequantize_kv(Stream stream, const QuantizeKvParams<T>& params) {
  launch(stream, {.blocks_x = params.records, .threads = 512}, &dequantize_kv_kernel<T>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_QUANTIZE_KV_CUH_
