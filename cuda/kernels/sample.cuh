// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_CUDA_KERNELS_SAMPLE_CUH_
#define INCIPIT_CUDA_KERNELS_SAMPLE_CUH_

#include "cuda/kernels/likeliest.cuh"
#include "cuda/prim/launch.cuh"
#include "cuda/prim/philox.cuh"

namespace incipit::cuda {

/// How the token of a row is drawn, as engine::TokenSampler has it.
struct SamplingRow {
  std::uint64_t seed = 0;
  std::uint64_t sample = 0;
  std::uint32_t position = 0;
  std::uint32_t top_k = 0;   // 0: all
  float temperature = 1.0f;  // 0: the likeliest
  float top_p = 1.0f;
  float min_p = 0.0f;
};

constexpr std::int32_t kNoToken = -1;

struct SampleParams {
  const float* logits = nullptr;  // [rows, vocabulary], adjusted
  std::int64_t stride = 0;
  const SamplingRow* how = nullptr;  // [rows]
  std::int32_t* tokens = nullptr;    // [rows]; kNoToken where all logits are -infinity or NaN
  unsigned rows = 0;
  unsigned vocabulary = 0;
};

/// Of a range of ids: the mass of the tokens above the limit, and how many are equal to it.
struct Range {
  prim::Wide mass;
  std::uint32_t equals;
};

/// The part of a token in the draw.
struct Part {
  prim::Wide mass;  // 0: none
  bool is_equal;    // to the limit: only the first ones of those take part
};

INCIPIT_DEVICE Part part_of(const Weigher& weigher, const Limit& limit, float min_p, float score) {
  const float weight = weigher.weight(score);
  const prim::Wide mass = mass_of(weight);
  if (mass == 0 || weight < min_p) return {0, false};
  const std::uint32_t key = ordered(score);
  return {key >= limit.key ? mass : 0, key == limit.key};
}

/// The mass of a range of which `before` equals come first.
INCIPIT_DEVICE prim::Wide mass_within(const Range& range, const Limit& limit,
                                      std::uint32_t before) {
  const std::uint32_t left = before < limit.equals ? limit.equals - before : 0;
  return range.mass + (range.equals < left ? range.equals : left) * limit.mass;
}

/// Draws in the order of the ids. `counts` and `masses` hold a Range for each kRanges-th part of
/// the vocabulary, of `ids_per_range` ids; called by warp 0.
INCIPIT_DEVICE std::int32_t draw(const float* scores, unsigned vocabulary, unsigned ids_per_range,
                                 const Weigher& weigher, const Limit& limit, const SamplingRow& how,
                                 const Histogram& ranges) {
  using namespace prim;
  constexpr unsigned kRun = Histogram::kRanges / kWarpLanes;
  // Of the ranges of this lane: how many equals come before them, and what they have together.
  std::uint32_t equals = 0;
  for (unsigned i = 0; i < kRun; ++i) equals += ranges.range_count(lane() * kRun + i);
  const std::uint32_t start = scan_lanes(equals) - equals;
  Wide mass = 0;
  std::uint32_t before = start;
  for (unsigned i = 0; i < kRun; ++i) {
    const unsigned at = lane() * kRun + i;
    const Range range = {ranges.range_mass(at), ranges.range_count(at)};
    mass += mass_within(range, limit, before);
    before += range.equals;
  }
  const Wide up_to = scan_lanes(mass);
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  const Philox random = philox4x32({{how.position, 0, low(how.sample), high(how.sample)}},
                                   low(how.seed), high(how.seed));
  const std::uint64_t bits = std::uint64_t{random.words[1]} << 32 | random.words[0];
  const Wide total = shuffle(up_to, kWarpLanes - 1);
  if (total == 0) return kNoToken;
  Wide point = multiply_high(bits, total);

  // The lane whose ranges hold the point, then the range.
  const unsigned owner = first_lane(ballot(point < up_to));
  point -= shuffle(up_to - mass, owner);
  before = shuffle(start, owner);
  unsigned range = owner * kRun;
  for (; range + 1 < Histogram::kRanges; ++range) {
    const Range here = {ranges.range_mass(range), ranges.range_count(range)};
    const Wide within = mass_within(here, limit, before);
    if (point < within) break;
    point -= within;
    before += here.equals;
  }
  // 32 ids at a time.
  for (unsigned first = range * ids_per_range; first < vocabulary; first += kWarpLanes) {
    const unsigned id = first + lane();
    Part part = {0, false};
    if (id < vocabulary) part = part_of(weigher, limit, how.min_p, load(scores + id));
    const std::uint32_t equal = ballot(part.is_equal);
    const bool late = before + count_lanes(equal & lanes_before()) >= limit.equals;
    const Wide sum = scan_lanes(part.is_equal && late ? Wide{0} : part.mass);
    const std::uint32_t reached = ballot(point < sum);
    if (reached != 0) return static_cast<std::int32_t>(first + first_lane(reached));
    point -= shuffle(sum, kWarpLanes - 1);
    before += count_lanes(equal);
  }
  return kNoToken;  // not reached: the point lies below the sum of all
}

/// Fills the ranges: all warps.
template <unsigned kThreads>
INCIPIT_DEVICE void add_up_ranges(const float* scores, unsigned vocabulary, unsigned ids_per_range,
                                  const Weigher& weigher, const Limit& limit, float min_p,
                                  Histogram& ranges) {
  using namespace prim;
  ranges.clear<kThreads>();
  sync_threads();
  for (unsigned first = warp() * kWarpLanes; first < vocabulary; first += kThreads) {
    const unsigned id = first + lane();
    Part part = {0, false};
    if (id < vocabulary) part = part_of(weigher, limit, min_p, load(scores + id));
    const Wide mass = sum_lanes(part.is_equal ? Wide{0} : part.mass);
    const std::uint32_t equals = count_lanes(ballot(part.is_equal));
    if (lane() == 0) ranges.add_to_range(first / ids_per_range, equals, mass);
  }
  sync_threads();
}

/// The limit that top_k and top_p set together.
template <unsigned kThreads>
INCIPIT_DEVICE Limit limit_of(const float* scores, unsigned vocabulary, const Weigher& weigher,
                              const SamplingRow& how, prim::Wide total, Histogram& histogram) {
  Limit limit = no_limit();
  if (how.top_k > 0) {
    limit = fewest_likeliest<kThreads>(
        scores, vocabulary, weigher, histogram,
        [&](std::uint32_t count, prim::Wide) { return count >= how.top_k; });
    if (limit.key != no_limit().key) total = limit.total;
  }
  if (how.top_p < 1.0f) {
    const double wanted = static_cast<double>(how.top_p) * static_cast<double>(total);
    const Limit share = fewest_likeliest<kThreads>(
        scores, vocabulary, weigher, histogram,
        [&](std::uint32_t, prim::Wide mass) { return static_cast<double>(mass) >= wanted; });
    const bool is_stricter =
        share.key > limit.key || (share.key == limit.key && share.equals < limit.equals);
    if (is_stricter) limit = share;
  }
  return limit;
}

/// One block per row. Probabilities are integers, so their sums do not depend on who adds first:
/// the token is that of the CPU, bit for bit the same choice.
template <unsigned kThreads>
INCIPIT_KERNEL(kThreads)
sample_kernel(SampleParams params) {
  using namespace prim;
  INCIPIT_SHARED(Histogram, histogram);
  INCIPIT_SHARED(float[kThreads / kWarpLanes], best_scratch);
  INCIPIT_SHARED(Wide[kThreads / kWarpLanes], mass_scratch);
  INCIPIT_SHARED(std::uint32_t[kThreads / kWarpLanes], first_scratch);
  const SamplingRow how = params.how[block_x()];
  const float* const scores = params.logits + std::int64_t{block_x()} * params.stride;
  const auto for_each = [&](const auto& visit) {
    for (unsigned id = thread_x(); id < params.vocabulary; id += kThreads) {
      visit(id, load(scores + id));
    }
  };
  float best = -infinity();
  for_each([&](unsigned, float score) { best = score > best ? score : best; });
  best = reduce_block<kThreads>(best, best_scratch, [](float a, float b) { return a > b ? a : b; });
  std::uint32_t first = 0xffffffffu;
  const Weigher weigher = {best, divide_rn(1.0f, how.temperature)};
  Wide mass = 0;
  for_each([&](unsigned id, float score) {
    if (score == best && id < first) first = id;
    mass += mass_of(weigher.weight(score));
  });
  first = reduce_block<kThreads>(first, first_scratch,
                                 [](std::uint32_t a, std::uint32_t b) { return a < b ? a : b; });
  const Wide total = sum_block<kThreads>(mass, mass_scratch);
  std::int32_t* const token = params.tokens + block_x();
  if (best == -infinity() || how.temperature == 0.0f || total == 0) {
    const bool none = best == -infinity();
    if (thread_x() == 0) store(token, none ? kNoToken : static_cast<std::int32_t>(first));
    return;
  }
  const Limit limit = limit_of<kThreads>(scores, params.vocabulary, weigher, how, total, histogram);
  constexpr unsigned kStep = Histogram::kRanges * kWarpLanes;
  const unsigned ids_per_range = (params.vocabulary + kStep - 1) / kStep * kWarpLanes;
  add_up_ranges<kThreads>(scores, params.vocabulary, ids_per_range, weigher, limit, how.min_p,
                          histogram);
  if (warp() > 0) return;
  const std::int32_t drawn =
      draw(scores, params.vocabulary, ids_per_range, weigher, limit, how, histogram);
  if (lane() == 0) store(token, drawn);
}

inline void sample(Stream stream, const SampleParams& params) {
  launch(stream, {.blocks_x = params.rows, .threads = 512}, &sample_kernel<512>, params);
}

}  // namespace incipit::cuda

#endif  // INCIPIT_CUDA_KERNELS_SAMPLE_CUH_
