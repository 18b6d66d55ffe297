// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_SAMPLER_JSON_FIELD_H_
#define INCIPIT_SAMPLER_JSON_FIELD_H_

#include <optional>
#include <string>
#include <string_view>

namespace incipit::sampler {

/// The member of the last JSON object with that member, as extract::json_field() documents.
/// Objects nested beyond 32 levels are none; of very many objects the last 256 are looked at.
std::optional<std::string> last_json_field(std::string_view text, std::string_view field);

}  // namespace incipit::sampler

#endif  // INCIPIT_SAMPLER_JSON_FIELD_H_
