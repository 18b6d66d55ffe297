// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_PRODUCT_F32_CUH_
#define INCIPIT_CUDA_KERNELS_PRODUCT_F32_CUH_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/math.cuh"
#include "cuda/prim/memory.cuh"

namespace incipit::cuda {

/// Strides in elements.
struct ProductF32Params {
  const float* x = nullptr;  // [rows, depth]
  std::int64_t x_stride = 0;
  const float* weight = nullptr;  // [outputs, depth], without gaps
  const float* bias = nullptr;    // [outputs] or null
  float* out = nullptr;           // [rows, outputs]
  std::int64_t out_stride = 0;
  unsigned rows = 0;
  unsigned outputs = 0;
  unsigned depth = 0;
};

/// A block of 16 x 16 threads computes kRows rows of 64 outputs; thread (i, j) has the rows i,
/// i + 16, ... and the outputs j, j + 16, ... The sum of each output is one chain of fused steps in
/// ascending k, so it is the same for every kRows.
template <unsigned kRows>
struct ProductF32Tile {
  static constexpr unsigned kThreads = 256, kSide = 16;
  static constexpr unsigned kOutputs = 64, kDepth = 32;
  static constexpr unsigned kPitch = kDepth + 1;  // rows begin in different banks
  static constexpr unsigned kRowsOfThread = kRows / kSide;
  static constexpr unsigned kOutputsOfThread = kOutputs / kSide;
  static_assert(kRows % kSide == 0 && kThreads % kDepth == 0);

  /// Rows first .. first + kCount of a matrix, columns k .. k + kDepth; zeros where there is none.
  template <unsigned kCount>
  static INCIPIT_DEVICE void load_tile(float* tile, const float* matrix, std::int64_t stride,
                                       unsigned first, unsigned rows, unsigned k, unsigned depth) {
    using namespace prim;
    const unsigned column = thread_x() % kDepth;
    for (unsigned r = thread_x() / kDepth; r < kCount; r += kThreads / kDepth) {
      float value = 0.0f;
      if (first + r < rows && k + column < depth) {
        value = load_constant(matrix + std::int64_t{first + r} * stride + k + column);
      }
      shared_store(tile + r * kPitch + column, value);
    }
  }

  static INCIPIT_DEVICE void multiply(const float* x, const float* w,
                                      float (&sums)[kRowsOfThread][kOutputsOfThread]) {
    using namespace prim;
    const float* const own_x = x + thread_x() / kSide * kPitch;
    const float* const own_w = w + thread_x() % kSide * kPitch;
    for (unsigned k = 0; k < kDepth; ++k) {
      float a[kRowsOfThread], b[kOutputsOfThread];
      for (unsigned i = 0; i < kRowsOfThread; ++i) {
        a[i] = shared_load(own_x + i * kSide * kPitch + k);
      }
      for (unsigned j = 0; j < kOutputsOfThread; ++j) {
        b[j] = shared_load(own_w + j * kSide * kPitch + k);
      }
      for (unsigned i = 0; i < kRowsOfThread; ++i) {
        for (unsigned j = 0; j < kOutputsOfThread; ++j) {
          sums[i][j] = fma_rn(a[i], b[j], sums[i][j]);
        }
      }
    }
  }
};

template <unsigned kRows>
INCIPIT_KERNEL(ProductF32Tile<kRows>::kThreads)
product_f32_kernel(ProductF32Params params) {
  using namespace prim;
  using Tile = ProductF32Tile<kRows>;
  INCIPIT_SHARED(float[kRows * Tile::kPitch], x);
  INCIPIT_SHARED(float[Tile::kOutputs * Tile::kPitch], w);
  const unsigned first_output = block_x() * Tile::kOutputs, first_row = block_y() * kRows;
  float sums[Tile::kRowsOfThread][Tile::kOutputsOfThread] = {};
  for (unsigned k = 0; k < params.depth; k += Tile::kDepth) {
    Tile::template load_tile<kRows>(x, params.x, params.x_stride, first_row, params.rows, k,
                                    params.depth);
    Tile::template load_tile<Tile::kOutputs>(w, params.weight, params.depth, first_output,
                                             params.outputs, k, params.depth);
    sync_threads();
    Tile::multiply(x, w, sums);
    sync_threads();
  }
  for (unsigned i = 0; i < Tile::kRowsOfThread; ++i) {
    const unsigned row = first_row + thread_x() / Tile::kSide + i * Tile::kSide;
    for (unsigned j = 0; j < Tile::kOutputsOfThread; ++j) {
      const unsigned output = first_output + thread_x() % Tile::kSide + j * Tile::kSide;
      if (row >= params.rows || output >= params.outputs) continue;
      float sum = sums[i][j];
      if (params.bias != nullptr) sum += load_constant(params.bias + output);
      store(params.out + std::int64_t{row} * params.out_stride + output, sum);
    }
  }
}

template <unsigned kRows>
void product_f32_tiles(Stream stream, const ProductF32Params& params) {
  using Tile = ProductF32Tile<kRows>;
  launch(stream,
         {.blocks_x = (params.outputs + Tile::kOutputs - 1) / Tile::kOutputs,
          .blocks_y = (params.rows + kRows - 1) / kRows,
          .threads = Tile::kThreads},
         &product_f32_kernel<kRows>, params);
}

/// out = x weight^T + bias, in f32 throughout.
inline void product_f32(Stream stream, const ProductF32Params& params) {
  if (params.rows <= 16) {
    product_f32_tiles<16>(stream, params);
  } else {
    product_f32_tiles<64>(stream, params);
  }
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_PRODUCT_F32_CUH_
