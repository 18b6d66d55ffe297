// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_KV_TILE_CUH_
#define INCIPIT_CUDA_KERNELS_KV_TILE_CUH_

#include "cuda/prim/async_copy.cuh"
#include "cuda/prim/memory.cuh"
#include "device/kv_layout.h"

// Tiles of keys or values in shared memory, as 16-bit values for ldmatrix.
//
// A tile's rows are padded to a power of two of at least 128 bytes, and within 128 bytes row r
// keeps its 16-byte chunk c at place c ^ (r % 8): then eight rows of one column of chunks lie in
// different banks, and so do eight chunks of one row.

namespace incipit::cuda {

constexpr unsigned padded_dim(unsigned dim) { return dim <= 64 ? 64 : dim <= 128 ? 128 : 256; }

/// Index of the first of the 8 values of a chunk.
template <unsigned kPitch>
INCIPIT_DEVICE unsigned chunk_index(unsigned row, unsigned chunk) {
  static_assert(kPitch >= 64 && (kPitch & (kPitch - 1)) == 0);  // for chunk_beyond
  return row * kPitch + (chunk ^ (row & 7u)) * 8;
}

/// The chunk that lies `chunks`, a multiple of n, to the right of one of the first n, n a power of
/// two: cheap to compute, so that no register needs to keep it.
INCIPIT_DEVICE unsigned chunk_beyond(unsigned index, unsigned chunks) { return index ^ chunks * 8; }

/// K or V of one KV head of one layer, seen along an item's block list. Values of V are finite up
/// to key_end, as a row multiplies those of keys that it does not see, too, by zero; whoever writes
/// V of F16 or BF16 sees to it (append_kv). K may be anything: scores of hidden keys are replaced.
struct KvPlane {
  const unsigned char* base = nullptr;  // of the head's record in block 0 of the pool
  std::int64_t block_bytes = 0;
  const device::BlockId* blocks = nullptr;
  unsigned first_key = 0;  // of blocks[0]
  unsigned key_end = 0;    // keys from here on are not written yet

  /// The record of the block that holds a key.
  INCIPIT_DEVICE const unsigned char* record(unsigned key) const {
    constexpr auto kTokens = static_cast<unsigned>(device::kBlockTokens);
    const device::BlockId block = prim::load_constant(blocks + (key - first_key) / kTokens);
    return base + static_cast<std::int64_t>(block) * block_bytes;
  }
};

/// kKeys rows of values, stored as T or as std::int8_t. Int8 comes through `stage`, where a thread
/// finds what it copied itself, and becomes T exactly; one stage does for K and V by turns.
template <class T, class Stored, unsigned kDim, unsigned kKeys, unsigned kThreads>
struct KvTileLoader {
  static constexpr bool kInt8 = sizeof(Stored) == 1;
  static constexpr unsigned kPitch = padded_dim(kDim);
  static constexpr unsigned kTokens = static_cast<unsigned>(device::kBlockTokens);
  static constexpr unsigned kChunkValues = 16 / sizeof(Stored);
  static constexpr unsigned kChunks = kDim / kChunkValues;  // of a row
  // Threads step over the padding, too, where the lanes that write together must be of few rows.
  static constexpr unsigned kSteps = kInt8 ? kPitch / kChunkValues : kChunks;
  static constexpr unsigned kTileBytes = kKeys * kPitch * 2;
  static constexpr unsigned kStageBytes = kInt8 ? kKeys * kSteps * 16 : 0;
  static constexpr unsigned kRounds = (kKeys * kSteps + kThreads - 1) / kThreads;
  static_assert(kDim % kChunkValues == 0 && kDim <= kPitch);

  /// Starts the copies of the keys first_key .. first_key + kKeys; zeros past the end.
  static INCIPIT_DEVICE void issue(const KvPlane& plane, unsigned first_key, T* tile,
                                   unsigned char* stage, float* scales) {
    INCIPIT_UNROLL
    for (unsigned step = 0; step < kRounds; ++step) {
      const unsigned i = step * kThreads + prim::thread_x();
      const unsigned row = i / kSteps, chunk = i % kSteps, key = first_key + row;
      if (is_beyond(i) || (kSteps > kChunks && chunk >= kChunks)) continue;
      const bool valid = key < plane.key_end;
      const unsigned char* from = plane.base;
      if (valid) from = plane.record(key) + key % kTokens * (kDim * sizeof(Stored)) + chunk * 16;
      void* const to = kInt8 ? static_cast<void*>(stage + i * 16)
                             : static_cast<void*>(tile + chunk_index<kPitch>(row, chunk));
      prim::copy_async_16(to, from, valid);
    }
    if constexpr (kInt8) {
      for (unsigned row = prim::thread_x(); row < kKeys; row += kThreads) {
        const unsigned key = first_key + row;
        const bool valid = key < plane.key_end;
        const unsigned char* from = plane.base;
        if (valid) from = plane.record(key) + kTokens * kDim + key % kTokens * sizeof(float);
        prim::copy_async_4(scales + row, from, valid);
      }
    }
  }

  /// Turns what this thread has copied, and waited for, to T; also the padding, which nobody reads.
  static INCIPIT_DEVICE void unpack(const unsigned char* stage, T* tile) {
    if constexpr (kInt8) {
      INCIPIT_UNROLL
      for (unsigned step = 0; step < kRounds; ++step) {
        const unsigned i = step * kThreads + prim::thread_x();
        if (is_beyond(i)) continue;
        const unsigned row = i / kSteps, chunk = i % kSteps;
        const auto words = prim::shared_load(
            reinterpret_cast<const prim::Pack<std::uint32_t, 4>*>(stage + i * 16));
        // Lanes four chunks apart write the two halves in turns: together they fill the banks.
        const unsigned second = chunk >> 2 & 1u;
        INCIPIT_UNROLL
        for (unsigned turn = 0; turn < 2; ++turn) {
          const unsigned half = turn ^ second;
          const std::uint32_t low = half != 0 ? words[2] : words[0];
          const std::uint32_t high = half != 0 ? words[3] : words[1];
          const prim::Pack<std::uint32_t, 4> values = {
              {pair_of(low, 0), pair_of(low, 1), pair_of(high, 0), pair_of(high, 1)}};
          prim::shared_store(reinterpret_cast<prim::Pack<std::uint32_t, 4>*>(
                                 tile + chunk_index<kPitch>(row, 2 * chunk + half)),
                             values);
        }
      }
    }
  }

 private:
  /// Whether the last round has nothing for this thread.
  static INCIPIT_DEVICE bool is_beyond(unsigned i) {
    return kKeys * kSteps % kThreads != 0 && i >= kKeys * kSteps;
  }

  /// Signed bytes 2 * pair and 2 * pair + 1 of a word as T.
  static INCIPIT_DEVICE std::uint32_t pair_of(std::uint32_t word, unsigned pair) {
    const auto value = [&](unsigned byte) {
      return static_cast<float>(static_cast<std::int8_t>(word >> (8 * byte) & 0xffu));
    };
    return prim::pack_pair<T>(value(2 * pair), value(2 * pair + 1));
  }
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_KV_TILE_CUH_
