// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_TEXT_UNICODE_FORM_H_
#define INCIPIT_TEXT_UNICODE_FORM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace incipit::text {

/// The normalisation forms of Unicode (UAX 15).
enum class UnicodeForm : std::uint8_t { kC, kD, kKC, kKD };

/// True where the form of a text is that of what stands before this character and that of what
/// begins with it. (False for some where it would be true, too.)
bool is_closed_before(char32_t code, UnicodeForm form);

/// Appends valid UTF-8 in a form. O(n log n) in the longest run of marks, else O(n). `codes` is
/// memory to work in.
void append_form(std::string& out, std::string_view text, UnicodeForm form, std::u32string& codes);

/// The same for a whole text, cut where that changes nothing, so that the memory stays small. A
/// form has up to 11 times the bytes; of one with more than `max_bytes` only a front with more than
/// those is made.
std::string in_form(std::string_view text, UnicodeForm form, std::size_t max_bytes = SIZE_MAX);

}  // namespace incipit::text

#endif  // INCIPIT_TEXT_UNICODE_FORM_H_
