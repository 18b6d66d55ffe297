// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_VECTOR_COLUMNS_CUH_
#define INCIPIT_CUDA_KERNELS_VECTOR_COLUMNS_CUH_

#include "cuda/kernels/kv_tile.cuh"
#include "cuda/prim/warp.cuh"

namespace incipit::cuda {

/// How K or V of some neighbouring keys lies over a warp: 8 columns in each of kKeyLanes lanes,
/// kKeys keys side by side, kLoads of them in each lane. Int8 comes 16 bytes at a time, too: of two
/// neighbouring lanes one loads the 16 columns of both for one key, the other for the next one of
/// theirs, and then they swap halves.
template <class Stored, unsigned kDim>
struct VectorColumns {
  static constexpr bool kInt8 = sizeof(Stored) == 1;
  static constexpr unsigned kWidth = 8;
  static constexpr unsigned kKeyLanes = padded_dim(kDim) / kWidth;
  static constexpr unsigned kKeys = prim::kWarpLanes / kKeyLanes;
  static constexpr unsigned kLoads = 4;
  static constexpr unsigned kWords = kWidth * sizeof(Stored) / 4;
  static constexpr unsigned kFetches = kInt8 ? kLoads / 2 : kLoads;  // of 16 bytes
  static_assert(kDim % 16 == 0);

  using Words = prim::Pack<std::uint32_t, kWords>;        // the columns of a key
  using Loaded = prim::Pack<std::uint32_t, 4>[kFetches];  // as they come

  static INCIPIT_DEVICE unsigned chunk() { return prim::lane() % kKeyLanes; }
  /// Whether this lane has columns; of padded heads some have none.
  static INCIPIT_DEVICE bool has_columns() { return chunk() < kDim / kWidth; }

  /// Starts to load the keys from step_key on, all of one block, whose K or V begins at `record`;
  /// zeros for those that are not in begin .. end.
  static INCIPIT_DEVICE void load(Loaded& to, const unsigned char* record, unsigned step_key,
                                  unsigned begin, unsigned end) {
    constexpr auto kTokens = static_cast<unsigned>(device::kBlockTokens);
    const unsigned column = kInt8 ? chunk() / 2 * 16 : chunk() * 16;  // in bytes
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kFetches; ++i) {
      const unsigned number = kInt8 ? 2 * i + prim::lane() % 2 : i;
      const unsigned key = step_key + number * kKeys + prim::lane() / kKeyLanes;
      to[i] = {};
      if (!has_columns() || key < begin || key >= end) continue;
      to[i] = prim::load_constant(reinterpret_cast<const prim::Pack<std::uint32_t, 4>*>(
          record + key % kTokens * (kDim * sizeof(Stored)) + column));
    }
  }

  /// What was loaded, key by key.
  static INCIPIT_DEVICE void spread(const Loaded& from, Words (&to)[kLoads]) {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kFetches; ++i) {
      if constexpr (kInt8) {
        const bool odd = prim::lane() % 2 != 0;
        INCIPIT_UNROLL
        for (unsigned w = 0; w < kWords; ++w) {
          const std::uint32_t kept = odd ? from[i][w + 2] : from[i][w];
          const std::uint32_t given = odd ? from[i][w] : from[i][w + 2];
          const std::uint32_t taken = prim::shuffle_xor(given, 1);
          to[2 * i][w] = odd ? taken : kept;
          to[2 * i + 1][w] = odd ? kept : taken;
        }
      } else {
        to[i] = from[i];
      }
    }
  }

  static INCIPIT_DEVICE void unpack(const Words& words, float (&to)[kWidth]) {
    INCIPIT_UNROLL
    for (unsigned i = 0; i < kWidth; ++i) {
      if constexpr (kInt8) {
        // The byte as last bits of a float of 2^23: what converts bytes is slow.
        const std::uint32_t byte = (words[i / 4] ^ 0x80808080u) >> (8 * (i % 4)) & 0xffu;
        to[i] = prim::bit_cast<float>(0x4b000000u | byte) - 8388736.0f;
      } else {
        const auto bits = static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)));
        to[i] = prim::to_float(Stored{bits});
      }
    }
  }
};

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_VECTOR_COLUMNS_CUH_
