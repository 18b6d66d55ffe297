// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_UNICODE_FORM_H_
#define INCIPIT_TEXT_UNICODE_FORM_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace incipit::text {

/// The normalisation forms of Unicode (UAX 15).
enum class UnicodeForm : std::uint8_t { kC, kD, kKC, kKD };

/// Appends valid UTF-8 in a form. O(n log n) in the longest run of marks, else O(n). `codes` is
/// memory to work in.
void append_form(std::string& out, std::string_view text, UnicodeForm form, std::u32string& codes);

/// The same for a whole text, cut where that changes nothing, so that the memory stays small.
std::string in_form(std::string_view text, UnicodeForm form);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_UNICODE_FORM_H_
