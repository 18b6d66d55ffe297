// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_EMBED_CODED_CUH_
#define INCIPIT_CUDA_KERNELS_EMBED_CODED_CUH_

#include "cuda/kernels/product_weights.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"

namespace incipit::cuda {

template <class Code>
struct EmbedCodedParams {
  CodedWeight<Code> table = {};
  const std::int32_t* ids = nullptr;  // [rows], not negative
  float scale = 1.0f;
  float* out = nullptr;  // [rows, table.columns]
  std::int64_t out_stride = 0;
  unsigned rows = 0;
};

/// One weight of a quantised matrix, from its record: code * scale (+ minimum), in f32.
template <class Code>
INCIPIT_DEVICE float coded_value(const CodedWeight<Code>& table, unsigned output, unsigned column) {
  using namespace prim;
  using Weight = CodedWeight<Code>;
  const unsigned records = (table.columns + kProductDepth - 1) / kProductDepth;
  const unsigned char* const record =
      table.data +
      (std::int64_t{output / 8} * records + column / kProductDepth) * Weight::kRecordBytes;
  const unsigned block = column % kProductDepth / 32, pair = column % 32 / 8;
  const unsigned quad = column % 8 / 2, side = column % 2;
  const unsigned place = block * 32 + output % 8 * 4 + quad;
  const auto* const words = reinterpret_cast<const std::uint32_t*>(record) + place * Weight::kWords;
  unsigned code;
  if constexpr (Code::kBits == 8) {
    code = load(words + pair / 2) >> (8 * (pair % 2 + 2 * side)) & 255u;
  } else {
    code = load(words) >> (4 * (pair + 4 * side)) & 15u;
    if constexpr (Code::kBits == 6) {
      const unsigned high =
          load(reinterpret_cast<const std::uint16_t*>(record + Weight::kCodeBytes) + place);
      code |= (high >> (2 * pair + 8 * side) & 3u) << 4;
    }
  }
  const auto* const numbers =
      reinterpret_cast<const F16*>(record + Weight::kCodeBytes + Weight::kHighBytes) +
      (block * 8 + output % 8) * Weight::kNumbers;
  const float scale = to_float(load(numbers + (Code::kScales == 2 ? pair / 2 : 0)));
  const float minimum = Code::kMinimum ? to_float(load(numbers + Weight::kNumbers - 1)) : 0.0f;
  return fma_rn(static_cast<float>(static_cast<int>(code) - static_cast<int>(Code::kOffset)), scale,
                minimum);
}

/// out[i] = table[ids[i]] * scale, one block per row.
template <class Code>
INCIPIT_KERNEL(128)
embed_coded_kernel(EmbedCodedParams<Code> params) {
  using namespace prim;
  const auto id = static_cast<unsigned>(load(params.ids + block_x()));
  float* const out = params.out + std::int64_t{block_x()} * params.out_stride;
  for (unsigned column = thread_x(); column < params.table.columns; column += 128) {
    store(out + column, coded_value(params.table, id, column) * params.scale);
  }
}

template <class Code>
void embed_coded(Stream stream, const EmbedCodedParams<Code>& params) {
  launch(stream, {.blocks_x = params.rows, .threads = 128}, &embed_coded_kernel<Code>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_EMBED_CODED_CUH_
