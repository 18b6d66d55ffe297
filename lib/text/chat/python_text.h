// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_CHAT_PYTHON_TEXT_H_
#define INCIPIT_TEXT_CHAT_PYTHON_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace incipit::text {

// What chat templates do to texts, as the Python that runs them does it.

/// Without Unicode white space at its ends: str.strip() and the filter `trim`.
std::string_view python_stripped(std::string_view text) noexcept;

/// json.dumps(value, ensure_ascii=False): the filter `tojson`. Bytes that are no UTF-8 become
/// U+FFFD.
std::string python_json(const nlohmann::ordered_json& value);
/// The same with a line per member and four more spaces per level.
std::string indented_json(const nlohmann::ordered_json& value);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_CHAT_PYTHON_TEXT_H_
