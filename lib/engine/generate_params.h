// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_GENERATE_PARAMS_H_
#define INCIPIT_ENGINE_GENERATE_PARAMS_H_

#include <cstddef>

#include "incipit/sampling.h"

namespace incipit::engine {

/// Throws Error{kInvalidArgument} naming the first field that has no meaning.
void check_params(const GenerateParams& params, std::size_t vocabulary);

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_GENERATE_PARAMS_H_
