// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_LOWER_CASE_H_
#define INCIPIT_TEXT_LOWER_CASE_H_

#include <string>
#include <string_view>

namespace incipit::text {

/// Valid UTF-8 with each character in lower case by itself: whatever the language, and without
/// regard to what stands beside it (a sigma at the end of a word is like any other).
std::string lower_case(std::string_view text);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_LOWER_CASE_H_
