// SPDX-License-Identifier: Apache-2.0
#include "model/rope_frequencies.h"

#include <cmath>
#include <numbers>
#include <string>

#include "base/check.h"

namespace incipit::model {
namespace {

[[noreturn]] void fail_rope(const std::string& why) {
  base::throw_error(ErrorCode::kModelUnreadable, "the model's RoPE " + why);
}

void check(double value, double low, double high, const char* what) {
  if (!(value >= low && value <= high)) {
    fail_rope(std::string(what) + " is " + std::to_string(value) + ", not between " +
              std::to_string(low) + " and " + std::to_string(high) + "; the file is damaged");
  }
}

// torch divides a number by a tensor this way, with two roundings.
float quotient(double dividend, float divisor) {
  return (1.0f / divisor) * static_cast<float>(dividend);
}

float scale_llama3(float frequency, const RopeScaling& scaling) {
  const float wavelength = quotient(2.0 * std::numbers::pi, frequency);
  const auto longest_kept = static_cast<float>(scaling.original_context / scaling.high);
  const auto shortest_divided = static_cast<float>(scaling.original_context / scaling.low);
  const auto factor = static_cast<float>(scaling.factor);
  if (wavelength > shortest_divided) return frequency / factor;
  if (wavelength < longest_kept) return frequency;
  const float turns = quotient(scaling.original_context, wavelength);
  const float kept =
      (turns - static_cast<float>(scaling.low)) / static_cast<float>(scaling.high - scaling.low);
  return (1.0f - kept) * frequency / factor + kept * frequency;
}

void check_scaling(const RopeScaling& scaling) {
  if (scaling.kind == RopeScaling::Kind::kNone) return;
  check(scaling.factor, 1.0, 1e6, "scaling factor");
  if (scaling.kind != RopeScaling::Kind::kLlama3) return;
  check(scaling.low, 1e-3, 1e6, "low frequency factor");
  check(scaling.high, 1e-3, 1e6, "high frequency factor");
  check(scaling.original_context, 1.0, 1e9, "original context");
  if (scaling.high <= scaling.low) {
    fail_rope("has a high frequency factor that is not above the low one; the file is damaged");
  }
}

}  // namespace

std::vector<float> rope_frequencies(double base, std::size_t rotated, const RopeScaling& scaling) {
  check(base, 1.0, 1e12, "base");
  check_scaling(scaling);
  std::vector<float> frequencies;
  frequencies.reserve(rotated / 2);
  for (std::size_t i = 0; i < rotated / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotated);
    const float frequency =
        1.0f / static_cast<float>(std::pow(base, static_cast<double>(exponent)));
    switch (scaling.kind) {
      case RopeScaling::Kind::kNone:
        frequencies.push_back(frequency);
        break;
      case RopeScaling::Kind::kLinear:
        frequencies.push_back(frequency / static_cast<float>(scaling.factor));
        break;
      case RopeScaling::Kind::kLlama3:
        frequencies.push_back(scale_llama3(frequency, scaling));
        break;
    }
  }
  return frequencies;
}

void divide_frequencies(std::span<float> frequencies, std::span<const float> factors) {
  INCIPIT_CHECK(frequencies.size() == factors.size());
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    check(static_cast<double>(factors[i]), 1.0, 1e6, "frequency factor");
    frequencies[i] /= factors[i];
  }
}

}  // namespace incipit::model
