// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_PRIM_WARP_CUH_
#define INCIPIT_CUDA_PRIM_WARP_CUH_

#include <bit>

#include "cuda/prim/types.cuh"

// Warps: shuffles, votes, and reductions whose order is fixed. All lanes of `mask` must call.

namespace incipit::cuda::prim {

#if INCIPIT_CUDA_EMULATED

template <class T>
INCIPIT_DEVICE T exchange(T value, simt::Shuffle kind, unsigned argument, std::uint32_t mask,
                          Site site) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = simt::shuffle(mask, bits, kind, argument, site);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
/// The value of lane `from`.
template <class T>
INCIPIT_DEVICE T shuffle(T value, unsigned from, std::uint32_t mask = kAllLanes,
                         Site site = Site::here()) {
  return exchange(value, simt::Shuffle::kIndex, from, mask, site);
}
/// The value of lane() ^ bits.
template <class T>
INCIPIT_DEVICE T shuffle_xor(T value, unsigned bits, std::uint32_t mask = kAllLanes,
                             Site site = Site::here()) {
  return exchange(value, simt::Shuffle::kXor, bits, mask, site);
}
/// The value of lane() - distance; the own one where there is none.
template <class T>
INCIPIT_DEVICE T shuffle_up(T value, unsigned distance, std::uint32_t mask = kAllLanes,
                            Site site = Site::here()) {
  return exchange(value, simt::Shuffle::kUp, distance, mask, site);
}
/// The value of lane() + distance; the own one where there is none.
template <class T>
INCIPIT_DEVICE T shuffle_down(T value, unsigned distance, std::uint32_t mask = kAllLanes,
                              Site site = Site::here()) {
  return exchange(value, simt::Shuffle::kDown, distance, mask, site);
}
/// Bit i: the predicate of lane i.
INCIPIT_DEVICE std::uint32_t ballot(bool predicate, std::uint32_t mask = kAllLanes,
                                    Site site = Site::here()) {
  return simt::ballot(mask, predicate, site);
}
/// Waits for the lanes; what they wrote before is seen by them after it. Shuffles order nothing.
INCIPIT_DEVICE void sync_warp(std::uint32_t mask = kAllLanes, Site site = Site::here()) {
  simt::sync_warp(mask, site);
}

#else

template <class T>
INCIPIT_DEVICE T shuffle(T value, unsigned from, std::uint32_t mask = kAllLanes,
                         Site = Site::here()) {
  return __shfl_sync(mask, value, static_cast<int>(from));
}
template <class T>
INCIPIT_DEVICE T shuffle_xor(T value, unsigned bits, std::uint32_t mask = kAllLanes,
                             Site = Site::here()) {
  return __shfl_xor_sync(mask, value, static_cast<int>(bits));
}
template <class T>
INCIPIT_DEVICE T shuffle_up(T value, unsigned distance, std::uint32_t mask = kAllLanes,
                            Site = Site::here()) {
  return __shfl_up_sync(mask, value, distance);
}
template <class T>
INCIPIT_DEVICE T shuffle_down(T value, unsigned distance, std::uint32_t mask = kAllLanes,
                              Site = Site::here()) {
  return __shfl_down_sync(mask, value, distance);
}
INCIPIT_DEVICE std::uint32_t ballot(bool predicate, std::uint32_t mask = kAllLanes,
                                    Site = Site::here()) {
  return __ballot_sync(mask, predicate);
}
INCIPIT_DEVICE void sync_warp(std::uint32_t mask = kAllLanes, Site = Site::here()) {
  __syncwarp(mask);
}

#endif

/// How many lanes a vote counts.
INCIPIT_DEVICE unsigned count_lanes(std::uint32_t votes) {
#if INCIPIT_CUDA_EMULATED
  return static_cast<unsigned>(std::popcount(votes));
#else
  return static_cast<unsigned>(__popc(votes));
#endif
}
/// The first lane of a vote that is not empty.
INCIPIT_DEVICE unsigned first_lane(std::uint32_t votes) {
#if INCIPIT_CUDA_EMULATED
  return static_cast<unsigned>(std::countr_zero(votes));
#else
  return static_cast<unsigned>(__ffs(static_cast<int>(votes)) - 1);
#endif
}
/// The lanes in front of this one.
INCIPIT_DEVICE std::uint32_t lanes_before() { return (1u << lane()) - 1; }

/// The sum of the values of all lanes up to this one.
template <class T>
INCIPIT_DEVICE T scan_lanes(T value, Site site = Site::here()) {
  for (unsigned distance = 1; distance < kWarpLanes; distance *= 2) {
    const T before = shuffle_up(value, distance, kAllLanes, site);
    if (lane() >= distance) value += before;
  }
  return value;
}

/// Combines the values of groups of kLanes neighbours by halves; each lane gets the same bits.
template <unsigned kLanes = kWarpLanes, class T, class Combine>
INCIPIT_DEVICE T reduce_lanes(T value, const Combine& combine, Site site = Site::here()) {
  for (unsigned bits = kLanes / 2; bits > 0; bits /= 2) {
    value = combine(value, shuffle_xor(value, bits, kAllLanes, site));
  }
  return value;
}
template <unsigned kLanes = kWarpLanes, class T>
INCIPIT_DEVICE T sum_lanes(T value, Site site = Site::here()) {
  return reduce_lanes<kLanes>(
      value, [](T a, T b) { return a + b; }, site);
}
/// NaN counts as nothing.
template <unsigned kLanes = kWarpLanes, class T>
INCIPIT_DEVICE T max_lanes(T value, Site site = Site::here()) {
  return reduce_lanes<kLanes>(
      value, [](T a, T b) { return a > b || b != b ? a : b; }, site);
}

}  // namespace incipit::cuda::prim

#endif  // INCIPIT_CUDA_PRIM_WARP_CUH_
