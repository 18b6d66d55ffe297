// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_PRODUCT_CUH_
#define INCIPIT_CUDA_KERNELS_PRODUCT_CUH_

#include "cuda/kernels/product_weights.cuh"
#include "cuda/prim/math.cuh"

// out = x * weight^T + bias in exact mode. Every output is one chain of mma over ascending columns,
// 16 at a time, whatever the tile: so a row's result does not depend on how many rows there are.

namespace incipit::cuda {

template <class Weight>
struct ProductParams {
  const typename Weight::T* x = nullptr;  // [rows, product_columns(columns)], of round_rows
  const float* scales = nullptr;          // [rows]
  Weight weight = {};
  const float* bias = nullptr;  // [outputs] or null
  float* out = nullptr;         // [rows, outputs]
  std::int64_t out_stride = 0;
  unsigned rows = 0;
};

/// How the warps of a block part its tile: kRowWarps x kColumnWarps of them, each with kRowTiles x
/// 16 rows and kColumnTiles x 8 outputs. kStages - 1 steps of kSteps x kProductDepth columns are
/// under way while one is computed; fewer, where they would not fit into kSharedLimit.
template <unsigned kRowWarpCount, unsigned kColumnWarpCount, unsigned kRowTileCount,
          unsigned kColumnTileCount, unsigned kStepsOfStage, unsigned kStageCount>
struct ProductShape {
  static constexpr unsigned kRowWarps = kRowWarpCount, kColumnWarps = kColumnWarpCount;
  static constexpr unsigned kRowTiles = kRowTileCount, kColumnTiles = kColumnTileCount;
  static constexpr unsigned kSteps = kStepsOfStage, kStages = kStageCount;
  static constexpr unsigned kRows = kRowWarps * kRowTiles * 16;
  static constexpr unsigned kOutputs = kColumnWarps * kColumnTiles * 8;
  static constexpr unsigned kThreads = kRowWarps * kColumnWarps * prim::kWarpLanes;
};

template <class Weight, class Shape>
class ProductTile {
  using T = typename Weight::T;
  static constexpr unsigned kRowBytes = Shape::kRows * kProductDepth * 2;
  static constexpr unsigned kStepBytes = kRowBytes + Weight::stage_bytes(Shape::kOutputs);
  static constexpr unsigned kStageBytes = Shape::kSteps * kStepBytes;
  static constexpr unsigned kFitting = kSharedLimit / kStageBytes;
  static constexpr unsigned kStages = kFitting < Shape::kStages ? kFitting : Shape::kStages;
  static_assert(kStages >= 2);

 public:
  static constexpr unsigned kSharedBytes = kStages * kStageBytes;

  INCIPIT_DEVICE ProductTile(const ProductParams<Weight>& params, unsigned char* shared)
      : params_(params),
        shared_(shared),
        first_row_(prim::block_y() * Shape::kRows),
        first_output_(prim::block_x() * Shape::kOutputs) {}

  INCIPIT_DEVICE void run() {
    const unsigned steps = product_columns(params_.weight.columns) / kProductDepth;
    const unsigned stages = (steps + Shape::kSteps - 1) / Shape::kSteps;
    clear_sums();
    for (unsigned stage = 0; stage + 1 < kStages; ++stage) issue(stage, steps);
    for (unsigned stage = 0; stage < stages; ++stage) {
      prim::wait_copies<kStages - 2>();
      prim::sync_threads();  // the stage is here, and the one before is free
      issue(stage + kStages - 1, steps);
      for (unsigned i = 0; i < Shape::kSteps; ++i) {
        multiply(shared_ + stage % kStages * kStageBytes + i * kStepBytes);
      }
    }
    prim::wait_copies<0>();
    store_sums();
  }

 private:
  /// Starts the copies of a stage, as one group even if nothing is left to copy.
  INCIPIT_DEVICE void issue(unsigned stage, unsigned steps) const {
    unsigned char* to = shared_ + stage % kStages * kStageBytes;
    if (stage * Shape::kSteps < steps) {
      INCIPIT_UNROLL
      for (unsigned i = 0; i < Shape::kSteps; ++i, to += kStepBytes) {
        const unsigned step = stage * Shape::kSteps + i;
        issue_rows(reinterpret_cast<T*>(to), step, steps);
        params_.weight.template issue<Shape::kOutputs, Shape::kThreads>(to + kRowBytes,
                                                                        first_output_, step);
      }
    }
    prim::commit_copies();
  }

  INCIPIT_DEVICE void issue_rows(T* to, unsigned step, unsigned steps) const {
    constexpr unsigned kChunks = kProductDepth / 8;
    INCIPIT_UNROLL
    for (unsigned i = prim::thread_x(); i < Shape::kRows * kChunks; i += Shape::kThreads) {
      const unsigned r = i / kChunks, chunk = i % kChunks;
      const std::int64_t row = first_row_ + r;
      const bool valid = row < params_.rows && step < steps;
      const T* const from =
          valid ? params_.x + (row * steps + step) * kProductDepth + chunk * 8 : params_.x;
      prim::copy_async_16(to + chunk_index<kProductDepth>(r, chunk), from, valid);
    }
  }

  INCIPIT_DEVICE unsigned row_warp() const { return prim::warp() % Shape::kRowWarps; }
  INCIPIT_DEVICE unsigned column_warp() const { return prim::warp() / Shape::kRowWarps; }

  INCIPIT_DEVICE void clear_sums() {
    INCIPIT_UNROLL
    for (unsigned t = 0; t < Shape::kRowTiles; ++t) {
      INCIPIT_UNROLL
      for (unsigned c = 0; c < Shape::kColumnTiles; ++c) {
        INCIPIT_UNROLL
        for (unsigned e = 0; e < 4; ++e) sums_[t][c][e] = 0.0f;
      }
    }
  }

  /// One step: kProductDepth columns.
  INCIPIT_DEVICE void multiply(const unsigned char* step) {
    const unsigned lane = prim::lane();
    const T* const rows =
        reinterpret_cast<const T*>(step) + row_warp() * Shape::kRowTiles * 16 * kProductDepth;
    const unsigned place = chunk_index<kProductDepth>(lane % 16, lane / 16);
    INCIPIT_UNROLL
    for (unsigned block = 0; block < kProductDepth / 32; ++block) {
      std::uint32_t a[2][Shape::kRowTiles][4];
      INCIPIT_UNROLL
      for (unsigned t = 0; t < Shape::kRowTiles; ++t) {
        INCIPIT_UNROLL
        for (unsigned half = 0; half < 2; ++half) {
          prim::load_matrix(a[half][t], rows + t * 16 * kProductDepth +
                                            chunk_beyond(place, 4 * block + 2 * half));
        }
      }
      INCIPIT_UNROLL
      for (unsigned c = 0; c < Shape::kColumnTiles; ++c) {
        std::uint32_t b[2][2];
        Weight::load(b, step + kRowBytes, column_warp() * Shape::kColumnTiles + c, block);
        INCIPIT_UNROLL
        for (unsigned half = 0; half < 2; ++half) {
          INCIPIT_UNROLL
          for (unsigned t = 0; t < Shape::kRowTiles; ++t) {
            prim::multiply<T>(sums_[t][c], a[half][t], b[half][0], b[half][1]);
          }
        }
      }
    }
  }

  INCIPIT_DEVICE void store_sums() const {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < 2 * Shape::kRowTiles; ++i) {
      const std::int64_t row =
          first_row_ + (row_warp() * Shape::kRowTiles + i / 2) * 16 + i % 2 * 8 + prim::lane() / 4;
      if (row >= params_.rows) continue;
      const float scale = prim::load_constant(params_.scales + row);
      float* const out = params_.out + row * params_.out_stride;
      INCIPIT_UNROLL
      for (unsigned c = 0; c < Shape::kColumnTiles; ++c) {
        const unsigned output =
            first_output_ + (column_warp() * Shape::kColumnTiles + c) * 8 + prim::lane() % 4 * 2;
        store_pair(out, output, sums_[i / 2][c][i % 2 * 2], sums_[i / 2][c][i % 2 * 2 + 1], scale);
      }
    }
  }

  INCIPIT_DEVICE void store_pair(float* out, unsigned output, float left, float right,
                                 float scale) const {
    prim::Pack<float, 2> pair = {{left, right}};
    INCIPIT_UNROLL
    for (unsigned e = 0; e < 2; ++e) {
      const bool biased = params_.bias != nullptr && output + e < params_.weight.outputs;
      const float bias = biased ? prim::load_constant(params_.bias + output + e) : 0.0f;
      pair[e] = prim::fma_rn(pair[e], scale, bias);
    }
    if (output + 1 < params_.weight.outputs &&
        reinterpret_cast<std::uintptr_t>(out + output) % sizeof(pair) == 0) {
      prim::store(reinterpret_cast<prim::Pack<float, 2>*>(out + output), pair);
      return;
    }
    INCIPIT_UNROLL
    for (unsigned e = 0; e < 2; ++e) {
      if (output + e < params_.weight.outputs) prim::store(out + output + e, pair[e]);
    }
  }

  const ProductParams<Weight>& params_;
  unsigned char* shared_;
  unsigned first_row_, first_output_;
  float sums_[Shape::kRowTiles][Shape::kColumnTiles][4];
};

/// blocks_x: tiles of outputs, blocks_y: of rows.
template <class Weight, class Shape>
INCIPIT_KERNEL(Shape::kThreads)
product_kernel(ProductParams<Weight> params) {
  ProductTile<Weight, Shape>(params, prim::dynamic_shared<unsigned char>()).run();
}

/// Steps of decoding: narrow tiles of outputs, so that all of the device reads weights, and much
/// of them under way.
using FewRowsShape = ProductShape<1, 4, 1, 1, 2, 6>;
using SomeRowsShape = ProductShape<2, 2, 2, 4, 1, 4>;
using ManyRowsShape = ProductShape<2, 4, 4, 4, 1, 3>;

template <class Shape, class Weight>
void product_in_shape(Stream stream, const ProductParams<Weight>& params) {
  launch(stream,
         {.blocks_x = (params.weight.outputs + Shape::kOutputs - 1) / Shape::kOutputs,
          .blocks_y = (params.rows + Shape::kRows - 1) / Shape::kRows,
          .threads = Shape::kThreads,
          .shared_bytes = ProductTile<Weight, Shape>::kSharedBytes},
         &product_kernel<Weight, Shape>, params);
}

template <class Weight>
void product(Stream stream, const ProductParams<Weight>& params) {
  if (params.rows <= FewRowsShape::kRows) return product_in_shape<FewRowsShape>(stream, params);
  if (params.rows <= 4 * SomeRowsShape::kRows) {
    return product_in_shape<SomeRowsShape>(stream, params);
  }
  product_in_shape<ManyRowsShape>(stream, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_PRODUCT_CUH_
