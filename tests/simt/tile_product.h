// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TESTS_SIMT_TILE_PRODUCT_H_
#define INCIPIT_TESTS_SIMT_TILE_PRODUCT_H_

#include "cuda/prim/launch.cuh"
#include "cuda/prim/memory.cuh"
#include "cuda/prim/mma.cuh"

// A product with everything that is easy to get wrong: tiles that arrive by cp.async while the last
// ones are multiplied, swizzled shared memory, ldmatrix, mma, ragged edges. What the emulator is
// tried on, and an example.

namespace incipit::testing {

using cuda::F16;

struct TileProduct {
  const F16* a = nullptr;  // [rows, depth]
  const F16* b = nullptr;  // [columns, depth]
  float* out = nullptr;    // [rows, columns] = a b^T
  unsigned rows = 0;
  unsigned columns = 0;
  unsigned depth = 0;  // a multiple of 8
};

constexpr unsigned kTileRows = 64, kTileColumns = 16, kTileDepth = 64;
constexpr unsigned kTileThreads = 128;        // warps of 16 rows each
constexpr unsigned kChunks = kTileDepth / 8;  // of 16 bytes, per row
constexpr unsigned kStageValues = (kTileRows + kTileColumns) * kTileDepth;

/// Where a chunk of a row lies: chunks of 8 rows change places, so that ldmatrix finds the same
/// column of all in different banks.
INCIPIT_DEVICE unsigned swizzled(unsigned row, unsigned chunk) {
  return (row * kChunks + (chunk ^ (row % 8))) * 8;
}

/// Starts to load rows [first, first + kRows) x columns [depth, depth + kTileDepth) of a matrix.
template <unsigned kRows>
INCIPIT_DEVICE void load_tile(F16* tile, const F16* from, unsigned first, unsigned rows,
                              unsigned depth, unsigned columns) {
  using namespace cuda::prim;
  for (unsigned i = thread_x(); i < kRows * kChunks; i += kTileThreads) {
    const unsigned row = i / kChunks, chunk = i % kChunks;
    const bool valid = first + row < rows && depth + chunk * 8 < columns;
    const std::int64_t at = std::int64_t{first + row} * columns + depth + chunk * 8;
    copy_async_16(tile + swizzled(row, chunk), from + (valid ? at : 0), valid);
  }
}

INCIPIT_DEVICE void load_stage(const TileProduct& p, F16* stage, unsigned depth) {
  using namespace cuda::prim;
  load_tile<kTileRows>(stage, p.a, block_x() * kTileRows, p.rows, depth, p.depth);
  load_tile<kTileColumns>(stage + kTileRows * kTileDepth, p.b, block_y() * kTileColumns, p.columns,
                          depth, p.depth);
  commit_copies();
}

/// sums [2][4]: two tiles of 16 x 8 per warp.
INCIPIT_DEVICE void multiply_stage(const F16* stage, float (&sums)[2][4]) {
  using namespace cuda::prim;
  const F16* const b_tile = stage + kTileRows * kTileDepth;
  for (unsigned step = 0; step < kTileDepth / 16; ++step) {
    std::uint32_t a[4], b[4];
    load_matrix<4>(a, stage + swizzled(warp() * 16 + lane() % 16, step * 2 + lane() / 16));
    const unsigned matrix = lane() / 8;
    load_matrix<4>(b, b_tile + swizzled(matrix / 2 * 8 + lane() % 8, step * 2 + matrix % 2));
    multiply<F16>(sums[0], a, b[0], b[1]);
    multiply<F16>(sums[1], a, b[2], b[3]);
  }
}

INCIPIT_KERNEL(kTileThreads) tile_product_kernel(TileProduct p) {
  using namespace cuda::prim;
  F16* const stages = dynamic_shared<F16>();
  float sums[2][4] = {};
  load_stage(p, stages, 0);
  const unsigned steps = (p.depth + kTileDepth - 1) / kTileDepth;
  for (unsigned step = 0; step < steps; ++step) {
    if (step + 1 < steps) {
      load_stage(p, stages + (step + 1) % 2 * kStageValues, (step + 1) * kTileDepth);
      wait_copies<1>();
    } else {
      wait_copies<0>();
    }
    sync_threads();
    multiply_stage(stages + step % 2 * kStageValues, sums);
    sync_threads();  // the next load goes to what was just read
  }
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned row = block_x() * kTileRows + warp() * 16 + lane() / 4 + i % 4 / 2 * 8;
    const unsigned column = block_y() * kTileColumns + i / 4 * 8 + 2 * (lane() % 4) + i % 2;
    if (row < p.rows && column < p.columns) {
      store(p.out + std::int64_t{row} * p.columns + column, sums[i / 4][i % 4]);
    }
  }
}

inline void tile_product(cuda::Stream stream, const TileProduct& p) {
  cuda::launch(stream,
               {.blocks_x = (p.rows + kTileRows - 1) / kTileRows,
                .blocks_y = (p.columns + kTileColumns - 1) / kTileColumns,
                .threads = kTileThreads,
                .shared_bytes = 2 * kStageValues * sizeof(F16)},
               &tile_product_kernel, p);
}

}  // namespace incipit::testing

#endif  // INCIPIT_TESTS_SIMT_TILE_PRODUCT_H_
