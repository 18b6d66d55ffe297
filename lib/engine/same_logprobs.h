// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_ENGINE_SAME_LOGPROBS_H_
#define INCIPIT_ENGINE_SAME_LOGPROBS_H_

#include <span>

#include "incipit/sampling.h"

// Whether two forward passes agree about the next token. Both give the whole vocabulary, the
// likeliest first.

namespace incipit::engine {

/// What every exact device owes.
bool same_bits(std::span<const TokenLogprob> a, std::span<const TokenLogprob> b) noexcept;

/// What other devices owe: of the probability, no more than 5 % lies on other tokens. A wrong
/// prefix moves far more than that, rounding far less.
bool about_equal(std::span<const TokenLogprob> a, std::span<const TokenLogprob> b);

}  // namespace incipit::engine

#endif  // INCIPIT_ENGINE_SAME_LOGPROBS_H_
