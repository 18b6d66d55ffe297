// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_PRODUCT_ROWS_CUH_
#define INCIPIT_CUDA_KERNELS_PRODUCT_ROWS_CUH_

#include "cuda/prim/block_reduce.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"

namespace incipit::cuda {

/// Columns of a step of a product.
constexpr unsigned kProductDepth = 64;

INCIPIT_HOST_DEVICE constexpr unsigned product_columns(unsigned columns) {
  return (columns + kProductDepth - 1) / kProductDepth * kProductDepth;
}

template <class T>
struct RoundRowsParams {
  const float* x = nullptr;  // [rows, columns]
  std::int64_t x_stride = 0;
  T* out = nullptr;         // [rows, product_columns(columns)], zeros behind the row; no gaps
  float* scales = nullptr;  // [rows]: what the products of a row are multiplied by
  unsigned rows = 0, columns = 0;
};

constexpr unsigned kRoundThreads = 128;

/// The input of products, rounded once to their type. One block per row. F16 has a short range, so
/// a row is brought by a power of two to where its largest |x| is in [2^14, 2^15): nothing
/// overflows, and values keep 11 bits down to 2^-28 of the largest. BF16 stays as it is.
template <class T>
INCIPIT_KERNEL(kRoundThreads)
round_rows_kernel(RoundRowsParams<T> params) {
  using namespace prim;
  constexpr unsigned kWidth = kPackOf<float>;
  INCIPIT_SHARED(std::uint32_t[kRoundThreads / kWarpLanes], scratch);
  const std::int64_t row = block_x();
  const float* const x = params.x + row * params.x_stride;
  const bool packed = is_packed(x);
  float factor = 1.0f;
  if constexpr (!kIsBF16<T>) {
    std::uint32_t top = 0;  // bits of |x| are ordered as the numbers are
    for_each_group<kWidth, kRoundThreads>(params.columns, [&](unsigned first, unsigned count) {
      const auto group = load_group<kWidth>(x + first, count, packed);
      for (unsigned i = 0; i < kWidth; ++i) {
        const std::uint32_t bits = bit_cast<std::uint32_t>(group[i]) & 0x7fffffffu;
        top = bits > top ? bits : top;
      }
    });
    top = reduce_block<kRoundThreads>(
        top, scratch, [](std::uint32_t a, std::uint32_t b) { return a > b ? a : b; });
    // Exponents of f32, biased: the factor's is 127 + 14 - (top's - 127), kept among the normal.
    const std::uint32_t exponent = top >> 23;
    const std::uint32_t wanted = exponent < 15 ? 253 : 268 - (exponent > 254 ? 254 : exponent);
    if (top != 0) factor = bit_cast<float>(wanted << 23);
  }
  if (thread_x() == 0) {
    const std::uint32_t exponent = bit_cast<std::uint32_t>(factor) >> 23;
    store(params.scales + row, bit_cast<float>((254 - exponent) << 23));
  }
  const unsigned columns = product_columns(params.columns);
  T* const out = params.out + row * columns;
  for_each_group<kWidth, kRoundThreads>(columns, [&](unsigned first, unsigned) {
    const unsigned count = first < params.columns ? params.columns - first : 0;
    const auto group = load_group<kWidth>(x + first, count < kWidth ? count : kWidth, packed);
    Pack<T, kWidth> rounded;
    for (unsigned i = 0; i < kWidth; ++i) rounded[i] = from_float<T>(group[i] * factor);
    store(reinterpret_cast<Pack<T, kWidth>*>(out + first), rounded);
  });
}

template <class T>
void round_rows(Stream stream, const RoundRowsParams<T>& params) {
  launch(stream, {.blocks_x = params.rows, .threads = kRoundThreads}, &round_rows_kernel<T>,
         params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_PRODUCT_ROWS_CUH_
