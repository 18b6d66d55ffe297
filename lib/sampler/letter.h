// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_LETTER_H_
#define INCIPIT_SAMPLER_LETTER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace incipit::sampler {

/// The capital letter of a multiple-choice answer, as extract::letter() documents.
std::optional<std::string> answer_letter(std::string_view text, std::size_t choices);

/// The capital of an answer that is a single letter and punctuation around it.
std::optional<std::string> single_letter(std::string_view answer);

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_LETTER_H_
