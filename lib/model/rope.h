// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_ROPE_H_
#define INCIPIT_MODEL_ROPE_H_

#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace incipit::model {

struct SinCos {
  float sin = 0.0f;
  float cos = 1.0f;
};

/// Sine and cosine of 0 <= angle < 2^20 radians, correct to within an ulp of f32 and the same bits
/// on every machine (plain double arithmetic, no libm).
SinCos sin_cos(float angle) noexcept;

/// angles[i] = the cosines, then the sines, of positions[i] * frequencies; [rows, 2 * half]. The
/// product is rounded to f32 before its sine is taken, as the models were trained.
void rope_angles(std::span<const std::uint32_t> positions, std::span<const float> frequencies,
                 tensor::Matrix angles) noexcept;

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_ROPE_H_
