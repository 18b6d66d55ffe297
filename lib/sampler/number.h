// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_NUMBER_H_
#define INCIPIT_SAMPLER_NUMBER_H_

#include <optional>
#include <string>
#include <string_view>

namespace incipit::sampler {

/// The exact reduced fraction that an answer is, as keys::number() documents: "18", "-3/4".
/// nullopt where it is no number, or numerator or denominator would take more than 128 bits.
std::optional<std::string> fraction_of(std::string_view answer);

/// The last number of a text in ASCII, as extract::last_number() documents.
std::optional<std::string> last_number_of(std::string_view text);

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_NUMBER_H_
