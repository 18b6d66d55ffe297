// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_VOCABULARY_PASSES_H_
#define INCIPIT_ENGINE_VOCABULARY_PASSES_H_

#include <cstddef>
#include <cstdint>

namespace incipit::engine {

/// Tokens of a vocabulary that are taken together.
inline constexpr std::size_t kTokenBlock = 256;

/// What some of a block's tokens weigh; see mass_of().
struct TokenMass {
  std::uint64_t mass = 0;
  std::uint32_t count = 0;
  float most = 0.0f;  // the largest weight
};

/// The probability of a weight of at most 1 in fixed point; none for e^kVanishes. With 2^24 tokens
/// the sum still fits 64 bits.
inline std::uint64_t mass_of(float weight) noexcept {
  // By way of a signed integer, for which there is an instruction.
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(weight * 0x1p40f));
}

/// The logarithm of a weight without a mass.
inline constexpr float kVanishes = -28.5f;

/// What is done to all tokens of a vocabulary, a block at a time: count <= kTokenBlock. Compiled
/// for several instruction sets from one source in plain arithmetic, so all give the same bits.
struct VocabularyPasses {
  /// The largest score; minus infinity for none. NaN counts as none.
  float (*largest)(const float* scores, std::size_t count);
  /// weights = e^((score - best) * inverse), those of NaN and below e^kVanishes without a mass.
  TokenMass (*weigh)(const float* scores, std::size_t count, float best, float inverse,
                     float* weights);
  /// Those that weigh `least` or more, which is above zero.
  TokenMass (*at_least)(const float* weights, std::size_t count, float least);
  /// terms = e^(logit - best).
  void (*exponentials)(const float* logits, std::size_t count, double best, double* terms);
};

/// For this machine; asks the CPU, so keep it.
const VocabularyPasses& vocabulary_passes() noexcept;

/// For any machine.
const VocabularyPasses& plain_vocabulary_passes() noexcept;

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_VOCABULARY_PASSES_H_
