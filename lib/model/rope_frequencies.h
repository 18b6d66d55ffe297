// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_ROPE_FREQUENCIES_H_
#define INCIPIT_MODEL_ROPE_FREQUENCIES_H_

#include <cstddef>
#include <span>
#include <vector>

namespace incipit::model {

/// How a model stretches RoPE beyond the context that it was first trained for.
struct RopeScaling {
  enum class Kind {
    kNone,
    kLinear,  // every frequency divided by `factor`
    kLlama3,  // low frequencies divided, high ones kept, blended between
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  // LLaMA-3: a pair that turns fewer than `low` times within the original context is divided, one
  // that turns more than `high` times is kept.
  double low = 1.0;
  double high = 4.0;
  double original_context = 8192.0;
};

/// [rotated / 2] radians per position: base^(-2i / rotated), scaled.
///
/// Every step is rounded to f32, as transformers computes them: a model has been trained with those
/// values, and near the end of a long context one unit in the last place of a frequency is a
/// visible angle. Throws Error{kModelUnreadable} for a base or scaling that makes no sense.
std::vector<float> rope_frequencies(double base, std::size_t rotated,
                                    const RopeScaling& scaling = {});

/// frequencies[i] /= factors[i]: LLaMA-3's scaling as GGUF files carry it. Both have one length.
/// Throws Error{kModelUnreadable} for a factor below 1: no frequency grows.
void divide_frequencies(std::span<float> frequencies, std::span<const float> factors);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_ROPE_FREQUENCIES_H_
