// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_APPEND_KV_CUH_
#define INCIPIT_CUDA_KERNELS_APPEND_KV_CUH_

#include "cuda/kernels/quantize_kv.cuh"
#include "device/device.h"

// What happens between the products of a layer and its attention, in one launch: queries and keys
// turn by their position (RoPE), and keys and values are rounded and written to the pool.
//
// V of F16 and BF16 in the pool is always finite (KvPlane says why). A head of a token whose V is
// not, as it would be rounded, is damaged: it gets V = 0 and K = NaN, so rows that see the token
// are NaN and all others what they would be without it.

namespace incipit::cuda {

/// A slot of a row that has none: nothing of it is written.
constexpr device::BlockId kNoBlock = ~device::BlockId{0};

/// Matrices of f32, 16-byte aligned, as are their rows. head_dim is a multiple of 4, at most
/// kMaxHeadDim.
struct AppendKvParams {
  float* q = nullptr;  // [rows, heads * head_dim], turned in place; null: none
  std::int64_t q_stride = 0;
  const float* k = nullptr;  // [rows, kv_heads * head_dim]
  std::int64_t k_stride = 0;
  const float* v = nullptr;
  std::int64_t v_stride = 0;
  const float* angles = nullptr;  // [rows, 2 * half]: cosines of a row's position, then sines
  std::int64_t angles_stride = 0;
  unsigned half = 0;  // pairs that turn, at most head_dim / 2; kHalves: a multiple of 4
  device::RopePairs pairs = device::RopePairs::kHalves;
  const device::KvSlot* slots = nullptr;  // [rows]
  // The layer's K and V in the pool, as in PagedAttentionParams.
  unsigned char* pool = nullptr;
  std::int64_t block_bytes = 0, k_offset = 0, v_offset = 0, head_bytes = 0;
  unsigned rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
};

constexpr unsigned kAppendThreads = 128;

/// One head of one row in a warp: groups of 4 neighbours, group lane + 32 g.
class HeadInWarp {
 public:
  static constexpr unsigned kWidth = 4, kGroups = kMaxHeadDim / (kWidth * prim::kWarpLanes);
  using Group = prim::Pack<float, kWidth>;

  INCIPIT_DEVICE HeadInWarp(const float* from, unsigned head_dim) : head_dim_(head_dim) {
    INCIPIT_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      values_[g] = {};
      if (has(g)) values_[g] = prim::load(reinterpret_cast<const Group*>(from + first(g)));
    }
  }

  INCIPIT_DEVICE unsigned first(unsigned g) const {
    return (g * prim::kWarpLanes + prim::lane()) * kWidth;
  }
  INCIPIT_DEVICE bool has(unsigned g) const { return first(g) < head_dim_; }
  INCIPIT_DEVICE Group& operator[](unsigned g) { return values_[g]; }

  /// The largest |value| as it is rounded to T; infinity where one is infinite or NaN.
  template <class T>
  INCIPIT_DEVICE float top() const {
    float top = 0.0f;
    INCIPIT_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      INCIPIT_UNROLL
      for (unsigned i = 0; i < kWidth; ++i) {
        const float next = magnitude(prim::to_float(prim::from_float<T>(values_[g][i])));
        top = next > top ? next : top;
      }
    }
    return largest_magnitude(top);
  }

  INCIPIT_DEVICE void fill(float value) {
    INCIPIT_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      INCIPIT_UNROLL
      for (unsigned i = 0; i < kWidth; ++i) values_[g][i] = value;
    }
  }

  /// Turns pair i = (a, b) to (a cos - b sin, b cos + a sin). `from`: where the head was loaded.
  INCIPIT_DEVICE void turn(const float* from, const float* angles, unsigned half,
                           device::RopePairs pairs) {
    INCIPIT_UNROLL
    for (unsigned g = 0; g < kGroups; ++g) {
      if (!has(g) || first(g) >= 2 * half) continue;
      const Group own = values_[g];
      const bool halves = pairs == device::RopePairs::kHalves;
      const bool upper = first(g) >= half;
      Group partner = {};
      if (halves) {
        const unsigned other = upper ? first(g) - half : first(g) + half;
        partner = prim::load(reinterpret_cast<const Group*>(from + other));
      }
      INCIPIT_UNROLL
      for (unsigned i = 0; i < kWidth; ++i) {
        if (!halves && first(g) + i >= 2 * half) continue;
        const unsigned pair = halves ? first(g) + i - (upper ? half : 0) : (first(g) + i) / 2;
        const float cosine = prim::load_constant(angles + pair);
        const float sine = prim::load_constant(angles + half + pair);
        const float other = halves ? partner[i] : own[i ^ 1u];
        const bool is_b = halves ? upper : i % 2 != 0;
        const float turned = own[i] * cosine, crossed = other * sine;
        values_[g][i] = is_b ? turned + crossed : turned - crossed;
      }
    }
  }

 private:
  unsigned head_dim_;
  Group values_[kGroups];
};

/// Stores a head's values as T at `record`, for token `offset` of the block.
template <class T>
INCIPIT_DEVICE void store_head(HeadInWarp& head, unsigned char* record, unsigned offset,
                               unsigned head_dim) {
  INCIPIT_UNROLL
  for (unsigned g = 0; g < HeadInWarp::kGroups; ++g) {
    if (!head.has(g)) continue;
    prim::Pack<T, HeadInWarp::kWidth> rounded;
    INCIPIT_UNROLL
    for (unsigned i = 0; i < HeadInWarp::kWidth; ++i) {
      rounded[i] = prim::from_float<T>(head[g][i]);
    }
    auto* const row = reinterpret_cast<T*>(record) + offset * head_dim;
    prim::store(reinterpret_cast<prim::Pack<T, HeadInWarp::kWidth>*>(row + head.first(g)), rounded);
  }
}

/// As integers, and their scale behind the 16 rows: quantize_kv.cuh.
template <>
INCIPIT_DEVICE void store_head<std::int8_t>(HeadInWarp& head, unsigned char* record,
                                            unsigned offset, unsigned head_dim) {
  const KvScale scale = kv_scale(head.top<float>());
  INCIPIT_UNROLL
  for (unsigned g = 0; g < HeadInWarp::kGroups; ++g) {
    if (!head.has(g)) continue;
    prim::Pack<std::int8_t, HeadInWarp::kWidth> rounded;
    INCIPIT_UNROLL
    for (unsigned i = 0; i < HeadInWarp::kWidth; ++i) {
      rounded[i] = kv_integer(head[g][i], scale.inverse);
    }
    prim::store(reinterpret_cast<prim::Pack<std::int8_t, HeadInWarp::kWidth>*>(
                    record + offset * head_dim + head.first(g)),
                rounded);
  }
  if (prim::lane() == 0) {
    prim::store(reinterpret_cast<float*>(record + kRecordTokens * head_dim) + offset, scale.scale);
  }
}

/// A warp per row and head: first the query heads, then those of K, then those of V.
template <class Stored>
INCIPIT_KERNEL(kAppendThreads)
append_kv_kernel(AppendKvParams params) {
  using namespace prim;
  const unsigned query_heads = params.q == nullptr ? 0 : params.heads;
  const unsigned heads = query_heads + 2 * params.kv_heads;
  const std::int64_t index =
      static_cast<std::int64_t>(block_x()) * (kAppendThreads / kWarpLanes) + warp();
  const std::int64_t row = index / heads;
  unsigned head = static_cast<unsigned>(index % heads);
  if (row >= params.rows) return;
  const float* const angles = params.angles + row * params.angles_stride;
  if (head < query_heads) {
    float* const q = params.q + row * params.q_stride + head * params.head_dim;
    HeadInWarp values(q, params.head_dim);
    values.turn(q, angles, params.half, params.pairs);
    sync_warp();  // all have read what others now overwrite
    INCIPIT_UNROLL
    for (unsigned g = 0; g < HeadInWarp::kGroups; ++g) {
      if (values.has(g)) {
        store(reinterpret_cast<HeadInWarp::Group*>(q + values.first(g)), values[g]);
      }
    }
    return;
  }
  const device::KvSlot slot = {load_constant(&params.slots[row].block),
                               load_constant(&params.slots[row].offset)};
  if (slot.block == kNoBlock) return;
  head -= query_heads;
  const bool is_v = head >= params.kv_heads;
  if (is_v) head -= params.kv_heads;
  const float* const v = params.v + row * params.v_stride + head * params.head_dim;
  const float* const from = is_v ? v : params.k + row * params.k_stride + head * params.head_dim;
  HeadInWarp values(from, params.head_dim);
  if (!is_v) values.turn(from, angles, params.half, params.pairs);
  if constexpr (sizeof(Stored) == 2) {
    const float top = is_v ? values.top<Stored>() : HeadInWarp(v, params.head_dim).top<Stored>();
    if (top == infinity()) {
      values.fill(is_v ? 0.0f : bit_cast<float>(0x7fc00000u));
    }
  }
  unsigned char* const record = params.pool + slot.block * params.block_bytes +
                                (is_v ? params.v_offset : params.k_offset) +
                                head * params.head_bytes;
  store_head<Stored>(values, record, slot.offset, params.head_dim);
}

/// Stored: float, F16, BF16 or std::int8_t.
template <class Stored>
void append_kv(Stream stream, const AppendKvParams& params) {
  INCIPIT_CHECK(params.head_dim % 4 == 0 && params.head_dim <= kMaxHeadDim);
  INCIPIT_CHECK(2 * params.half <= params.head_dim);
  INCIPIT_CHECK(params.pairs != device::RopePairs::kHalves || params.half % 4 == 0);
  INCIPIT_CHECK(params.q_stride % 4 == 0 && params.k_stride % 4 == 0 && params.v_stride % 4 == 0);
  constexpr std::int64_t kWarps = kAppendThreads / prim::kWarpLanes;
  const std::int64_t heads = (params.q == nullptr ? 0 : params.heads) + 2 * params.kv_heads;
  launch(stream,
         {.blocks_x = static_cast<unsigned>((params.rows * heads + kWarps - 1) / kWarps),
          .threads = kAppendThreads},
         &append_kv_kernel<Stored>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_APPEND_KV_CUH_
