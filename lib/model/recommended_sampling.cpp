// SPDX-License-Identifier: Apache-2.0
#include "model/recommended_sampling.h"

#include <cmath>
#include <string>

#include "model/files.h"

namespace incipit::model {
namespace {

// Above all that makes sense, and within the range of float and int.
constexpr double kMost = 1e6;

class Checker {
 public:
  explicit Checker(const std::filesystem::path& file) : file_(file) {}

  std::optional<float> number(const std::optional<double>& value, double least,
                              const char* name) const {
    if (!value) return std::nullopt;
    if (!(*value >= least && *value <= kMost)) {
      fail(file_, "its recommended " + std::string(name) + " is " + std::to_string(*value) +
                      ", which has no meaning; correct or remove it");
    }
    return static_cast<float>(*value);
  }

 private:
  const std::filesystem::path& file_;
};

}  // namespace

SamplingDefaults checked_sampling(const RecommendedSampling& found,
                                  const std::filesystem::path& file) {
  const Checker check(file);
  SamplingDefaults out;
  out.temperature = check.number(found.temperature, 0.0, "temperature");
  if (const auto k = check.number(found.top_k, -1.0, "top_k"); k && *k >= 1.0f) {
    out.top_k = static_cast<int>(*k);
  }
  if (const auto p = check.number(found.top_p, 0.0, "top_p"); p && *p > 0.0f && *p <= 1.0f) {
    out.top_p = p;
  }
  if (const auto p = check.number(found.min_p, 0.0, "min_p"); p && *p <= 1.0f) out.min_p = p;
  out.repetition_penalty = check.number(found.repetition_penalty, 1e-3, "repetition_penalty");
  return out;
}

}  // namespace incipit::model
