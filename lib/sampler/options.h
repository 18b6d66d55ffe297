// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_OPTIONS_H_
#define INCIPIT_SAMPLER_OPTIONS_H_

#include <cstddef>

#include "incipit/self_consistency.h"

namespace incipit::sampler {

/// Throws Error{kInvalidArgument} for what is out of range, or excludes each other.
void check(const SelfConsistencyOptions& options);

/// The same for what a call asks for.
void check(const GenerateParams& params);

/// What the engine is asked for sample `i`: a function of `i`, the options and the call alone. No
/// callbacks.
GenerateParams params_of_sample(const SelfConsistencyOptions& options, const GenerateParams& params,
                                std::size_t i);

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_OPTIONS_H_
