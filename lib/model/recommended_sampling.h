// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_MODEL_RECOMMENDED_SAMPLING_H_
#define INCIPIT_MODEL_RECOMMENDED_SAMPLING_H_

#include <filesystem>
#include <optional>

#include "incipit/sampling.h"

namespace incipit::model {

/// What a file says about sampling, as it says it.
struct RecommendedSampling {
  std::optional<double> temperature = {}, top_k = {}, top_p = {}, min_p = {};
  std::optional<double> repetition_penalty = {};
};

/// The same as GenerateParams takes it; a top_k below 1 or a top_p above 1 is none. Throws
/// Error{kModelUnreadable} naming a value that has no meaning.
SamplingDefaults checked_sampling(const RecommendedSampling& found,
                                  const std::filesystem::path& file);

}  // namespace incipit::model

#endif  // INCIPIT_MODEL_RECOMMENDED_SAMPLING_H_
