// SPDX-License-Identifier: Apache-2.0
// Included by vocabulary_passes.cpp once per instruction set: loops that the compiler makes vectors
// of.

inline float largest(const float* scores, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  float lanes[kLanes];
  for (float& lane : lanes) lane = kNever;
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t j = 0; j < kLanes; ++j) {
      lanes[j] = scores[i + j] > lanes[j] ? scores[i + j] : lanes[j];
    }
  }
  float most = kNever;
  for (; i < count; ++i) most = scores[i] > most ? scores[i] : most;
  for (const float lane : lanes) most = lane > most ? lane : most;
  return most;
}

// A mass of 40 bits is two integers of 20, of which a block's sums fit 32 bits: there are vectors
// of these.
constexpr float kHalf = 0x1p20f;

inline TokenMass whole_mass(std::int32_t high, std::int32_t low, std::int32_t count,
                            std::int32_t most) {
  return {(static_cast<std::uint64_t>(high) << 20) + static_cast<std::uint64_t>(low),
          static_cast<std::uint32_t>(count), std::bit_cast<float>(most)};
}

inline TokenMass at_least(const float* weights, std::size_t count, float least) {
  // Of numbers that are not negative the larger one has the larger bits.
  const auto least_bits = std::bit_cast<std::int32_t>(least);
  std::int32_t high = 0, low = 0, kept = 0, most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(weights[i]);
    const std::int32_t mask = bits >= least_bits ? -1 : 0;
    const float scaled = weights[i] * kHalf;
    const auto whole = static_cast<std::int32_t>(scaled);
    const auto rest = static_cast<std::int32_t>((scaled - static_cast<float>(whole)) * kHalf);
    high += whole & mask;
    low += rest & mask;
    kept -= mask;
    most = bits > most ? bits : most;
  }
  return whole_mass(high, low, kept, most);
}

inline TokenMass weigh(const float* scores, std::size_t count, float best, float inverse,
                       float* weights) {
  for (std::size_t i = 0; i < count; ++i) {
    const float logarithm = (scores[i] - best) * inverse;
    weights[i] = logarithm > kVanishes ? logarithm : kVanishes;  // NaN too
  }
  // A loop of its own: in one with the comparison the compiler finds no vectors.
  for (std::size_t i = 0; i < count; ++i) weights[i] = relative_weight(weights[i]);
  return at_least(weights, count, std::numeric_limits<float>::min());
}

inline void exponentials(const float* logits, std::size_t count, double best, double* terms) {
  constexpr double kLeast = -700.0;  // where exact_exp() begins
  // Loops of their own here, too.
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(logits[i]) - best;
    terms[i] = x > kLeast ? x : kLeast;  // NaN too
  }
  for (std::size_t i = 0; i < count; ++i) terms[i] = bounded_exp(terms[i]);
  for (std::size_t i = 0; i < count; ++i) {
    terms[i] = static_cast<double>(logits[i]) - best > kLeast ? terms[i] : 0.0;
  }
}

constexpr VocabularyPasses kPasses = {largest, weigh, at_least, exponentials};
