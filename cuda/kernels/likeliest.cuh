// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_LIKELIEST_CUH_
#define INCIPIT_CUDA_KERNELS_LIKELIEST_CUH_

#include "cuda/prim/atomic.cuh"
#include "cuda/prim/block_reduce.cuh"
#include "cuda/prim/math.cuh"

// The fewest of the likeliest tokens that are enough, by radix selection on the bits of their
// scores. Likelier is: a higher score, or the same and a lower id.

namespace incipit::cuda {

/// e^x for x in [-80, 0], bit for bit engine::relative_weight.
INCIPIT_DEVICE float relative_weight(float x) {
  using namespace prim;
  const float n = round_to_even(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto exponent = static_cast<std::uint32_t>((static_cast<std::int32_t>(n) + 127) << 23);
  return p * bit_cast<float>(exponent);
}

/// Weights relative to the best score; at least e^-28.5, which has no mass. NaN too.
struct Weigher {
  float best;
  float inverse;  // of the temperature

  INCIPIT_DEVICE float weight(float score) const {
    const float logarithm = (score - best) * inverse;
    return relative_weight(logarithm > -28.5f ? logarithm : -28.5f);
  }
};

/// Probability in fixed point: 2^40 for the best.
INCIPIT_DEVICE prim::Wide mass_of(float weight) {
  return static_cast<prim::Wide>(static_cast<long long>(weight * 0x1p40f));
}

/// Bits in the order of the scores, which are no NaN; both zeros are the same.
INCIPIT_DEVICE std::uint32_t ordered(float score) {
  const auto bits = prim::bit_cast<std::uint32_t>(score + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

/// Tokens of a higher key, and the first `equals` of those of this one.
struct Limit {
  std::uint32_t key;
  std::uint32_t equals;
  prim::Wide mass;   // of one of the equals
  prim::Wide total;  // of all within
};
INCIPIT_DEVICE Limit no_limit() { return {0, 0xffffffffu, 0, 0}; }

/// Counts and masses in shared memory: of bins of keys, or of ranges of ids.
struct Histogram {
  static constexpr unsigned kBins = 2048;
  static constexpr unsigned kRanges = 1024;

  // A lane reads a run of neighbours, 64 bins or 32 ranges; the gaps keep lanes in different banks.
  static constexpr unsigned kBinRun = kBins / 32, kRangeRun = kRanges / 32;
  INCIPIT_DEVICE static unsigned bin_slot(unsigned bin) { return bin + bin / kBinRun; }
  INCIPIT_DEVICE static unsigned range_slot(unsigned range) { return range + range / kRangeRun; }

  template <unsigned kThreads>
  INCIPIT_DEVICE void clear() {
    for (unsigned i = prim::thread_x(); i < kBins + 32; i += kThreads) {
      prim::shared_store(&counts[i], std::uint32_t{0});
      prim::shared_store(&masses[i], prim::Wide{0});
    }
  }
  INCIPIT_DEVICE void add(unsigned slot, std::uint32_t count, prim::Wide mass) {
    prim::atomic_add(&counts[slot], count);
    prim::atomic_add(&masses[slot], mass);
  }
  INCIPIT_DEVICE void add_to_range(unsigned range, std::uint32_t count, prim::Wide mass) {
    add(range_slot(range), count, mass);
  }
  INCIPIT_DEVICE std::uint32_t range_count(unsigned range) const {
    return prim::shared_load(&counts[range_slot(range)]);
  }
  INCIPIT_DEVICE prim::Wide range_mass(unsigned range) const {
    return prim::shared_load(&masses[range_slot(range)]);
  }

  std::uint32_t counts[kBins + 32];
  prim::Wide masses[kBins + 32];
  // What find_edge leaves for all threads.
  std::uint32_t edge;  // the bin, or kBins: even all are not enough
  std::uint32_t count_above;
  prim::Wide mass_above;
};

/// The highest bin with which the tokens are enough, given what lies above all bins. Called by warp
/// 0.
template <class Enough>
INCIPIT_DEVICE void find_edge(Histogram& histogram, std::uint32_t count_above,
                              prim::Wide mass_above, const Enough& enough) {
  using namespace prim;
  // Lane 0 has the highest bins, and goes down.
  const unsigned top = Histogram::kBins - 1 - lane() * Histogram::kBinRun;
  std::uint32_t count = 0;
  Wide mass = 0;
  for (unsigned i = 0; i < Histogram::kBinRun; ++i) {
    const unsigned slot = Histogram::bin_slot(top - i);
    count += shared_load(&histogram.counts[slot]);
    mass += shared_load(&histogram.masses[slot]);
  }
  const std::uint32_t count_with = count_above + scan_lanes(count);
  const Wide mass_with = mass_above + scan_lanes(mass);
  const std::uint32_t reached = ballot(count_with > 0 && enough(count_with, mass_with));
  if (reached == 0) {
    if (lane() == 0) shared_store(&histogram.edge, std::uint32_t{Histogram::kBins});
    return;
  }
  if (lane() != first_lane(reached)) return;
  count = count_with - count;
  mass = mass_with - mass;
  unsigned bin = top;
  for (;; --bin) {
    const unsigned slot = Histogram::bin_slot(bin);
    const std::uint32_t next_count = count + shared_load(&histogram.counts[slot]);
    const Wide next_mass = mass + shared_load(&histogram.masses[slot]);
    if (next_count > 0 && enough(next_count, next_mass)) break;
    count = next_count;
    mass = next_mass;
  }
  shared_store(&histogram.edge, std::uint32_t{bin});
  shared_store(&histogram.count_above, count);
  shared_store(&histogram.mass_above, mass);
}

/// The fewest of the likeliest for which enough(how many, their mass) holds, one at least;
/// no_limit() where even all are not enough. Only tokens with a mass count. 11, 11 and 10 bits of
/// the keys decide, one after the other. All threads call and get the same.
template <unsigned kThreads, class Enough>
INCIPIT_DEVICE Limit fewest_likeliest(const float* scores, unsigned vocabulary,
                                      const Weigher& weigher, Histogram& histogram,
                                      const Enough& enough) {
  using namespace prim;
  std::uint32_t prefix = 0, count_above = 0;
  Wide mass_above = 0;
  for (unsigned pass = 0; pass < 3; ++pass) {
    const unsigned shift = pass == 0 ? 21 : pass == 1 ? 10 : 0, bits = pass < 2 ? 11 : 10;
    histogram.clear<kThreads>();
    sync_threads();
    for (unsigned id = thread_x(); id < vocabulary; id += kThreads) {
      const float score = load(scores + id);
      const Wide mass = mass_of(weigher.weight(score));
      if (mass == 0) continue;
      const std::uint32_t key = ordered(score) >> shift;
      if (pass > 0 && key >> bits != prefix) continue;
      histogram.add(Histogram::bin_slot(key & ((1u << bits) - 1)), 1, mass);
    }
    sync_threads();
    if (warp() == 0) find_edge(histogram, count_above, mass_above, enough);
    sync_threads();
    const std::uint32_t edge = shared_load(&histogram.edge);
    if (edge == Histogram::kBins) return no_limit();
    prefix = prefix << bits | edge;
    count_above = shared_load(&histogram.count_above);
    mass_above = shared_load(&histogram.mass_above);
  }
  // All of one score have one mass: how many of them?
  const unsigned slot = Histogram::bin_slot(prefix & ((1u << 10) - 1));
  const std::uint32_t count = shared_load(&histogram.counts[slot]);
  const Wide mass = shared_load(&histogram.masses[slot]) / count;
  sync_threads();  // before they are cleared
  std::uint32_t least = 1, most = count;
  while (least < most) {
    const std::uint32_t middle = least + (most - least) / 2;
    if (enough(count_above + middle, mass_above + middle * mass)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return {prefix, least, mass, mass_above + least * mass};
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_LIKELIEST_CUH_
